"""Depths at which a checkpoint may be left.

A node of the tree can name only whole tree pages, and prefill yields a state only once per state
chunk. A checkpoint off that grid would be filed under a depth that is not its own, and its reader
would take the tokens in between twice. Both grids derive from the page that the tree really uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from .patches import Patches


@dataclass(frozen=True, slots=True)
class Grids:
    """Where extend (`checkpoint`) and decode (`track`) may leave checkpoints, in tokens."""

    checkpoint: int
    track: int
    saves: bool = True  # a verify's commit saves the state at a track depth that it crosses

    @staticmethod
    def derive(state_chunk: int, tree_page: int, interval: int, patches: Patches) -> Grids:
        """checkpoint = lcm(state chunk, tree page); track = lcm(checkpoint, interval).

        Without `checkpoint-grid` extend reads the state chunk alone, without `track-grid` decode
        reads the interval alone, as before the fixes.
        """
        checkpoint = lcm(state_chunk, tree_page) if patches.on("checkpoint-grid") else state_chunk
        track = lcm(state_chunk, tree_page, interval) if patches.on("track-grid") else interval
        return Grids(checkpoint, track)

    def crossed(self, before: int, after: int) -> int | None:
        """The last track depth in (before, after], or None."""
        depth = after // self.track * self.track
        return depth if depth > before else None

    def reachable(self, length: int, draft_tokens: int) -> bool:
        """May a verify that the host plans at `length` cross a track depth?

        Under overlap the host's length lags by up to one verify, so it looks two ahead.
        """
        return self.crossed(length, length + 2 * draft_tokens) is not None
