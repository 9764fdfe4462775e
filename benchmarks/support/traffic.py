"""Traffic as a busy engine speaks it, without the engine: legal, so that all detectors are clean.

`python traffic.py TRACE EVENTS RATE` writes it from a process of its own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role

SEATS, PROMPT, STEPS, GRID = 32, 200, 128, 64
SAID = tuple(Op)
"""It would tell every operation; most of them it never does."""
BURST = 4000
"""Events between two looks at the clock."""


class Traffic:
    """Cohorts of `SEATS` requests that decode together and end together."""

    def __init__(self, rate: float = 0) -> None:
        """`rate`: events per second, 0 for as many as go."""
        self.said_count = 0
        self._rate, self._begin_s, self._looked = rate, time.monotonic(), 0
        self._forward = self._named = 0
        probe.hook("traffic", SAID, live=True)

    def write(self, events: int) -> None:
        """Whole cohorts, until so many events are said."""
        while self.said_count < events:
            self._cohort()

    def _cohort(self) -> None:
        requests = [probe.request(f"r{self._named + at}") for at in range(SEATS)]
        self._named += SEATS
        live, keep = list(range(1, SEATS + 1)), list(range(SEATS + 1, 2 * SEATS + 1))
        rows = list(range(1, SEATS + 1))
        for at, request in enumerate(requests):
            probe.emit(Op.REQUEST_BEGIN, request=request, row=rows[at], label=PROMPT)
            probe.emit(Op.ALLOCATE, slots=live[at], request=request, role=Role.LIVE)
            probe.emit(Op.ALLOCATE, slots=keep[at], request=request, role=Role.KEEP)
        self._prefill(requests, rows, live, keep)
        for depth in range(PROMPT, PROMPT + STEPS):
            launch = self._launch(Kind.DECODE)
            self._advance(requests, rows, live, depth, depth + 1, Kind.DECODE, launch)
            self._done(Kind.DECODE, launch)
            self._pace()
        for at, request in enumerate(requests):
            probe.emit(Op.REQUEST_END, request=request, row=rows[at], depth=PROMPT + STEPS)
            probe.emit(Op.FREE, slots=keep[at], request=request, role=Role.KEEP)
            probe.emit(Op.FREE, slots=live[at], request=request, role=Role.LIVE)
        self.said_count += SEATS * (9 + STEPS) + 2 * (STEPS + 1)

    def _prefill(
        self, requests: list[int], rows: list[int], live: list[int], keep: list[int]
    ) -> None:
        launch = self._launch(Kind.PREFILL)
        said: dict[str, Any] = {
            "forward": self._forward,
            "kind": Kind.PREFILL,
            "launch": launch,
        }
        probe.emit(Op.CLEAR, slots=live, request=requests, role=Role.LIVE, depth=0, **said)
        self._advance(requests, rows, live, 0, PROMPT, Kind.PREFILL, launch)
        probe.emit(
            Op.SCATTER,
            slots=keep,
            request=requests,
            row=rows,
            role=Role.KEEP,
            depth=PROMPT // GRID * GRID,
            grid=GRID,
            **said,
        )
        self._done(Kind.PREFILL, launch)

    def _advance(
        self,
        requests: list[int],
        rows: list[int],
        live: list[int],
        before: int,
        after: int,
        kind: Kind,
        launch: int,
    ) -> None:
        probe.emit(
            Op.ADVANCE,
            slots=live,
            request=requests,
            row=rows,
            role=Role.LIVE,
            depth_before=[before] * SEATS,
            depth=[after] * SEATS,
            forward=self._forward,
            kind=kind,
            launch=launch,
        )

    def _launch(self, kind: Kind) -> int:
        self._forward += 1
        return probe.emit(Op.FORWARD_LAUNCH, forward=self._forward, kind=kind, stream=0)

    def _done(self, kind: Kind, launch: int) -> None:
        probe.emit(Op.FORWARD_DONE, forward=self._forward, kind=kind, launch=launch)

    def _pace(self) -> None:
        self._looked += SEATS + 2
        if self._rate and self._looked % BURST < SEATS + 2:
            early_s = self._begin_s + self._looked / self._rate - time.monotonic()
            if early_s > 0:
                time.sleep(early_s)


def main() -> None:
    """Trace this process and speak."""
    directory, events, rate = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    probe.start(directory, collector=False)
    Traffic(rate).write(events)
    lost = probe.lost_count()
    probe.stop()
    sys.stdout.write(f"{lost}\n")


if __name__ == "__main__":
    main()
