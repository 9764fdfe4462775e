"""A recurrence behind a short convolution: the part of a recurrent layer that has a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory
from slotscope.instrument.event import Kind
from slotscope.kernels.conv import conv_prefill, conv_update, conv_verify

from .plan import CHUNK, Plan, Row
from .ring import buffered_step, caught_up

Fed = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""What a recurrence's operators take before the state, each [T, ...]."""

Feed = Callable[[Tensor], Fed]
"""From the convolution's outputs [T, channels] to what the recurrence is fed."""


@dataclass(frozen=True, slots=True)
class Operators:
    """A kind of recurrence: one folder of `slotscope.kernels`, which describes the arguments."""

    chunk: Callable[..., tuple[Tensor, Tensor]]  # (*fed, initial, chunk)
    step: Callable[..., Tensor]  # (*fed, state, slots)
    verify: Callable[..., Tensor]  # (*fed, state, slots, steps, rows, parents)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Moves windows and states of one layer, whatever the recurrence. Prefill and decode move those
    of the batch's slots; verify leaves them and writes those after each token to scratch."""

    operators: Operators
    taps: Tensor  # [channels, kernel size]
    bias: Tensor | None  # [channels]
    layer: int  # index in memory.conv and memory.ssm
    skip: Tensor | None = None  # [heads, 1]: so much of the value is added to what is read

    def __call__(self, x: Tensor, feed: Feed, plan: Plan, memory: Memory) -> Tensor:
        """[T, channels] to [T, heads, head size]."""
        if plan.batch.kind is Kind.PREFILL:
            return self._prefill(x, feed, plan, memory)
        if plan.batch.scratch is None:
            return self._decode(x, feed, plan.batch, memory)
        return self._verify(x, feed, plan.batch, plan.batch.scratch, memory)

    def _prefill(self, x: Tensor, feed: Feed, plan: Plan, memory: Memory) -> Tensor:
        """Row by row through the chunked form; what they are fed is worked out at once."""
        conv, ssm = memory.conv[self.layer], memory.ssm[self.layer]
        fed = feed(torch.cat([self._convolve(x[r.start : r.end], r, conv) for r in plan.rows]))
        return self._skipped(
            torch.cat([self._scan(fed, row, ssm, memory) for row in plan.rows]), fed
        )

    def _convolve(self, x: Tensor, row: Row, conv: Tensor) -> Tensor:
        """[t, channels] of one row; its slots get the windows."""
        initial = conv[row.slot] if row.slot else torch.zeros_like(conv[0])
        y, windows = conv_prefill(x, initial, self.taps, self.bias)
        for track in row.tracks:
            conv[track.slot] = windows.after(track.tokens)
        if row.slot:
            conv[row.slot] = windows.after(x.shape[0])
        return y

    def _scan(self, fed: Fed, row: Row, ssm: Tensor, memory: Memory) -> Tensor:
        """[t, heads, head size] of one row; its slots get the states."""
        initial = ssm[row.slot] if row.slot else torch.zeros_like(ssm[0])
        mine = [each[row.start : row.end] for each in fed]
        if row.pending:
            ring = memory.ring[self.layer, row.slot]
            initial = caught_up(self.operators.step, mine, initial, ring, row.pending)
        seen, states = self.operators.chunk(*mine, initial, CHUNK)
        for track in row.tracks:
            ssm[track.slot] = states[(track.tokens - 1) // CHUNK]
        if row.slot:
            ssm[row.slot] = states[-1]
        return seen

    def _decode(self, x: Tensor, feed: Feed, batch: Forward, memory: Memory) -> Tensor:
        """One token a row."""
        slots = batch.slots
        conv, ssm = memory.conv[self.layer], memory.ssm[self.layer]
        fed = feed(conv_update(x, conv, self.taps, self.bias, slots))
        step, pending = self.operators.step, batch.pending
        if pending is None:
            return self._skipped(step(*fed, ssm, slots), fed)
        ring = memory.ring[self.layer]
        return self._skipped(buffered_step(step, fed, ssm, ring, slots, pending), fed)

    def _verify(
        self, x: Tensor, feed: Feed, batch: Forward, scratch: Tensor, memory: Memory
    ) -> Tensor:
        """A few tokens a row, a chain or a tree, that may yet be refused."""
        slots, parents = batch.slots, batch.parents
        lead = (slots.shape[0], -1)
        windows, steps = memory.conv_steps[self.layer], memory.ssm_steps[self.layer]
        conv, ssm = memory.conv[self.layer], memory.ssm[self.layer]
        x = x.unflatten(0, lead)
        y = conv_verify(x, conv, self.taps, self.bias, slots, windows, scratch, parents)
        fed = feed(y.flatten(0, 1))
        by_row: Any = (each.unflatten(0, lead) for each in fed)
        seen = self.operators.verify(*by_row, ssm, slots, steps, scratch, parents)
        return self._skipped(seen.flatten(0, 1), fed)

    def _skipped(self, seen: Tensor, fed: Fed) -> Tensor:
        return seen if self.skip is None else torch.addcmul(seen, fed[2], self.skip)
