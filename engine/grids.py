"""Depths at which a checkpoint may be left.

A node of the tree can name only whole tree pages, and prefill yields a state only once per state
chunk. A checkpoint off that grid would be filed under a depth that is not its own, and its reader
would take the tokens in between twice. Both grids derive from the page that the tree really uses,
which decode context ranks widen.

The interval that the operator gave is also a cadence: what must happen so often whatever the tree's
page is, such as folding a ring of inputs into the state. Readers of that cadence ask `flushes`, and
nobody else reads the interval: a grid in its place would let the ring grow past what it has room
for, and the interval in a grid's place is the bug that `track-grid` mends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from .patches import Patches


@dataclass(frozen=True, slots=True)
class Grids:
    """Where extend (`checkpoint`) and decode (`track`) may leave checkpoints, in tokens.

    `interval` divides `track`, so each step that leaves a checkpoint is also a flush step.
    """

    checkpoint: int
    track: int
    interval: int  # raw, as the operator gave it: the flush cadence
    saves: bool = True  # a verify's commit saves the state at a track depth that it crosses

    @staticmethod
    def derive(state_chunk: int, tree_page: int, interval: int, patches: Patches) -> Grids:
        """checkpoint = lcm(state chunk, tree page); track = lcm(checkpoint, interval).

        Without `checkpoint-grid` extend reads the state chunk alone, without `track-grid` decode
        reads the interval alone, as before the fixes.
        """
        checkpoint = lcm(state_chunk, tree_page) if patches.on("checkpoint-grid") else state_chunk
        track = lcm(state_chunk, tree_page, interval) if patches.on("track-grid") else interval
        return Grids(checkpoint, track, interval)

    def crossed(self, before: int, after: int) -> int | None:
        """The last track depth in (before, after], or None."""
        depth = after // self.track * self.track
        return depth if depth > before else None

    def flushes(self, before: int, after: int) -> bool:
        """Does a step from `before` to `after` tokens pass a multiple of the raw interval?"""
        return after // self.interval > before // self.interval

    def reachable(self, length: int, draft_tokens: int) -> bool:
        """May a verify that the host plans at `length` cross a track depth?

        Under overlap the host's length lags by up to one verify, so it looks two ahead.
        """
        return self.crossed(length, length + 2 * draft_tokens) is not None
