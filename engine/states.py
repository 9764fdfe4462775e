"""States: whole recurrent states on the device, moved between slots."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from slotscope.kernels import state

from .memory import Memory


class States:
    """Each call covers all layers and both components (conv and SSM)."""

    def __init__(self, memory: Memory, chunk: int) -> None:
        self.memory = memory
        self.chunk = chunk  # prefill yields a state every so many tokens

    def copy(self, source: Sequence[int], target: Sequence[int]) -> None:
        """State of source[i] becomes that of target[i]. No slot is in both."""
        if target:
            memory = self.memory
            state.copy((memory.conv, memory.ssm), self._index(source), self._index(target))

    def clear(self, slots: Sequence[int]) -> None:
        """An empty state, as before the first token."""
        if slots:
            state.clear((self.memory.conv, self.memory.ssm), self._index(slots))

    def scatter(self, rows: Tensor, steps: Tensor, slots: Tensor) -> None:
        """After a verify: the state at tree step steps[i] of scratch row rows[i] goes to slots[i].

        A step of -1, or slot 0, writes nothing. All three are [N] int64 on the device.
        """
        memory = self.memory
        state.scatter(
            memory.conv, memory.ssm, memory.conv_steps, memory.ssm_steps, rows, steps, slots
        )

    def _index(self, slots: Sequence[int]) -> Tensor:
        return torch.tensor(slots, dtype=torch.int64, device=self.memory.ssm.device)
