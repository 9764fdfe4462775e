"""States: whole recurrent states on the device, moved between slots."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from slotscope.kernels import state

from .memory import Memory


class States:
    """Each call covers all layers of all given memories, and all components of a state."""

    def __init__(self, memories: Sequence[Memory], chunk: int) -> None:
        self._memories = tuple(memories)
        self.chunk = chunk  # prefill yields a state every so many tokens

    def copy(self, source: Sequence[int], target: Sequence[int]) -> None:
        """State of source[i] becomes that of target[i]. No slot is in both."""
        for memory in self._memories if target else ():
            state.copy(_parts(memory), _index(source, memory), _index(target, memory))

    def clear(self, slots: Sequence[int]) -> None:
        """An empty state, as before the first token."""
        for memory in self._memories if slots else ():
            state.clear(_parts(memory), _index(slots, memory))

    def scatter(self, rows: Tensor, steps: Tensor, slots: Tensor) -> None:
        """After a verify: the state at tree step steps[i] of scratch row rows[i] goes to slots[i].

        A step of -1, or slot 0, writes nothing. All three are [N] int64 on the device.
        """
        for memory in self._memories:
            state.scatter(
                memory.conv, memory.ssm, memory.conv_steps, memory.ssm_steps, rows, steps, slots
            )


def _parts(memory: Memory) -> tuple[Tensor, ...]:
    return tuple(memory.components.values())


def _index(slots: Sequence[int], memory: Memory) -> Tensor:
    return torch.tensor(slots, dtype=torch.int64, device=memory.ssm.device)
