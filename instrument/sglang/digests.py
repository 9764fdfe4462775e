"""Digests: hashes of states as they lie on the device. Level 2.

One is taken where a checkpoint is given to the tree, and one where it is read again. It is launched
on the stream that computes forwards, behind all that was launched before, so it sees what the next
forward will; it comes to the host as slot numbers do, and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import layout
from .ids import Id, Ids


class Digests:
    """Takes the digests of one process."""

    def __init__(self, ids: Ids) -> None:
        self.stream: Any = None  # SGLang's, of its forwards; None where it has none
        self._ids = ids

    def of(self, pool: Any, slots: Any) -> Sequence[Id]:
        """The digest of each slot's bytes, over all layers, convolution windows and states.

        Args:
            pool: SGLang's HybridReqToTokenPool.
            slots: [N] int64, on the states' device.
        """
        states = layout.states(pool)
        if slots.device.type == "cpu":
            return self._ids.of(_digest(states, layout.places(pool, slots)))
        import torch

        here = torch.cuda.current_stream(slots.device)
        stream = self.stream or here
        stream.wait_stream(here)  # the slot numbers were made here
        with torch.cuda.stream(stream):
            found = self._ids.of(_digest(states, layout.places(pool, slots)))
        slots.record_stream(stream)
        return found

    def warm_up(self, pool: Any) -> None:
        """Compile the kernel now, not under a request's donate."""
        import torch

        self.of(pool, torch.zeros(1, dtype=torch.int64, device=layout.states(pool)[0].device))


def _digest(states: Sequence[Any], slots: Any) -> Any:
    # The kernels want torch, which only a process with SGLang's model has loaded.
    from slotscope.kernels.state import digest_parts

    return digest_parts(states, slots)
