"""Backlog: what waits to be exported, bounded in events, batches and facts."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from slotscope.instrument.batch import Batch

if TYPE_CHECKING:
    from slotscope.instrument.batch import Row

BATCHES_MAX = 1024
"""More don't wait, however few events they have: one takes some KiB even if it has a single one."""

FACTS_MAX = 100_000
"""Requests, notes or anchors that wait beside the same events."""


_FACTS = ("requests", "notes", "anchors")
"""What spans need beside events."""


class Backlog:
    """Batches in the order they came. For one thread that puts and one that takes.

    Once it is full, the events of what comes are dropped, and the facts go to the last batch that
    waits, so that later spans still have their names.
    """

    def __init__(
        self, *, events_max: int, batches_max: int = BATCHES_MAX, facts_max: int = FACTS_MAX
    ) -> None:
        self._events_max, self._batches_max = events_max, batches_max
        self._facts_max = facts_max
        self._waiting: deque[Batch] = deque()
        self._count = 0  # of events
        self._lock = Lock()

    def __len__(self) -> int:
        """Batches that wait."""
        return len(self._waiting)

    @property
    def facts_count(self) -> int:
        """Requests, notes and anchors that wait."""
        with self._lock:
            return sum(len(f) for batch in self._waiting for f in _facts(batch))

    def put(self, batch: Batch) -> int:
        """Take in a batch; how many of its events are dropped."""
        count = len(batch.events["seq"])
        with self._lock:
            full = len(self._waiting) >= self._batches_max
            full |= bool(self._count) and self._count + count > self._events_max
            if self._waiting and (full or not count):
                self._fold(batch)
                return count
            fresh = Batch(batch.events)
            self._waiting.append(fresh)
            self._fold(batch)
            self._count += count
            return 0

    def take(self) -> Batch | None:
        """The batch that has waited longest."""
        with self._lock:
            if not self._waiting:
                return None
            batch = self._waiting.popleft()
            self._count -= len(batch.events["seq"])
            return batch

    def _fold(self, batch: Batch) -> None:
        """Keep the facts of a batch with the last one that waits, the latest ones if too many."""
        for kept, fresh in zip(_facts(self._waiting[-1]), _facts(batch), strict=True):
            kept.extend(fresh)
            del kept[: max(len(kept) - self._facts_max, 0)]


def _facts(batch: Batch) -> list[list[Row]]:
    return [getattr(batch, name) for name in _FACTS]
