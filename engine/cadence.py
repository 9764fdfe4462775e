"""Cadence: when a decode step folds the inputs of a slot's replay ring into its state."""

from __future__ import annotations

from dataclasses import dataclass

from .grids import Grids


@dataclass(frozen=True, slots=True)
class Cadence:
    """At each multiple of the raw track interval, and whenever the ring would be full.

    It is the raw interval, not the track grid: a checkpoint is a copy of the live state, so each
    step that leaves one must fold, and `Grids` sees to it that these are among the interval's.
    """

    length: int  # inputs that a ring holds; 0: there is none, each step moves the state
    grids: Grids

    def folds(self, pending: int, before: int, after: int) -> bool:
        """Does the step from `before` to `after` tokens fold, with so many inputs in the ring?"""
        return pending + 1 >= self.length or self.grids.flushes(before, after)
