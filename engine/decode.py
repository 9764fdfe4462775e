"""Decode: which running requests take a step, and what that step may write."""

from __future__ import annotations

from slotscope.instrument.event import Kind

from .batch import Batch, Item
from .checkpoints import Strategy
from .running import Running


class Decode:
    """All requests whose prompt is launched step together, as a decode or as a verify."""

    def __init__(self, strategy: Strategy, *, speculate: bool) -> None:
        self._strategy, self._speculate = strategy, speculate
        self.running: list[Running] = []

    def next_batch(self) -> Batch | None:
        """One step of everybody."""
        if not self.running:
            return None
        if self._speculate:
            return Batch(Kind.VERIFY, tuple(self._verify(each) for each in self.running))
        return Batch(Kind.DECODE, tuple(self._step(each) for each in self.running))

    def _step(self, running: Running) -> Item:
        start = running.length
        running.length += 1
        target = self._strategy.aim_decode(running, running.length)
        return Item(running, start, running.length, target)

    def _verify(self, running: Running) -> Item:
        target = self._strategy.aim_verify(running)
        running.outstanding.append(target)
        return Item(running, running.length, running.length, target)
