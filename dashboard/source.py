"""The trace that is watched: opened once for all browsers, read again when it has grown."""

from __future__ import annotations

import time
from pathlib import Path
from threading import RLock

import pyarrow as pa

import slotscope
from slotscope.instrument.check import run
from slotscope.instrument.report import Report

REST = 4
"""A growing trace is read again after it rested this many times as long as the last read took."""


KEPT_MAX = 64
"""Answers that are kept until the trace is read again: a click asks most questions once more."""

KEPT_ROWS_MAX = 10_000
"""Rows of an answer that is kept."""


class Watch:
    """One trace directory. Answers SQL, gives the verdicts, and knows how fresh both are.

    Sessions share it, each in a thread of its own; a lock keeps their questions apart.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = RLock()
        self._read()

    def _read(self) -> None:
        begin = time.monotonic()
        self._trace = slotscope.open(self.directory)
        self._was_live = self._trace.live
        self._report: Report | None = None
        self._answers: dict[str, pa.Table] = {}
        self.read_s = time.monotonic() - begin
        self.read_at = time.monotonic()

    def refresh(self) -> None:
        """Read the trace again if there may be more of it and the last reading is old enough."""
        with self._lock:
            rested = time.monotonic() - self.read_at
            if rested < max(1.0, REST * self.read_s):
                return
            if not self._trace.grown() and self._trace.live == self._was_live:
                return
            begin = time.monotonic()
            if self._trace.live and self._trace.catch_up():
                self._report = None
                self._answers.clear()
                self.read_at = time.monotonic()
                self.read_s = self.read_at - begin
                return
            old = self._trace
            self._read()
            old.close()

    def sql(self, query: str, /) -> pa.Table:
        """The answer of the trace as it was last read; a kept one where there is one."""
        with self._lock:
            answer = self._answers.get(query)
            if answer is None:
                answer = self.run(query)
                if answer.num_rows <= KEPT_ROWS_MAX:
                    self._answers[query] = answer
                if len(self._answers) > KEPT_MAX:
                    del self._answers[next(iter(self._answers))]
            return answer

    def run(self, query: str) -> pa.Table:
        """The answer of the trace as it was last read, made anew."""
        with self._lock:
            return self._trace.sql(query)

    def report(self) -> Report:
        """Verdicts and findings of the trace as it was last read."""
        with self._lock:
            if self._report is None:
                self._report = run(self._trace)
            return self._report
