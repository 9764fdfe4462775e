"""Place: where a writer stands in its segment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .layout import SEGMENT_SIZE


class Place:
    """A plain one. `native.ring.Ring` is its twin, at which the compiled `emit` writes too."""

    __slots__ = ("busy", "end", "first", "gap", "map", "orders", "seq")

    def __init__(self, orders: Iterator[int]) -> None:
        self.orders = orders  # of the process
        self.map: Any = None  # of the segment
        self.end = SEGMENT_SIZE  # Full, so that the first record takes a segment.
        self.seq = 0
        self.first = 0  # seq of this segment's first event
        self.gap = False  # something was lost that no record tells of yet
        self.busy = False  # a call is under way
