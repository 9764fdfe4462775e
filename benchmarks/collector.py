"""How fast a trace is stored, and read again."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from table import Table

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Kind, Op, Role
from slotscope.instrument.scan import Scan

EVENTS = 1_000_000


def write(directory: Path, slots: int) -> None:
    """About `EVENTS` events of decode steps, `slots` in a call."""
    probe.start(directory, collector=False)
    rows = list(range(1, slots + 1))
    for turn in range(EVENTS // slots // 4):
        launch = probe.emit(Op.FORWARD_LAUNCH, forward=turn, kind=Kind.DECODE)
        probe.emit(Op.ALLOCATE, slots=rows, request=rows, role=Role.LIVE)
        for depth in (turn, turn + 1):
            probe.emit(
                Op.ADVANCE, slots=rows, request=rows, row=rows, depth_before=depth,
                depth=depth + 1, role=Role.LIVE, forward=turn, launch=launch,
            )  # fmt: skip
        probe.emit(Op.FREE, slots=rows, role=Role.LIVE)
        if turn * slots % 4000 < slots:
            time.sleep(0.02)  # Segments are made ahead at the pace of a disk, not of a loop.
    probe.stop()


def run() -> Table:
    """Measure calls of one, eight and 32 slots."""
    table = Table("collector", "Events per second, in thousands")
    for slots in (1, 8, 32):
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "trace"
            write(trace, slots)
            scan, count, begin = Scan(trace), 0, time.perf_counter()
            while not (batch := scan.batch()).empty:
                count += len(batch.events["seq"])
            table.add(f"B = {slots}: segments to columns", "k/s", _rate(count, begin))
            scan.close()
            begin = time.perf_counter()
            Collector(trace, linger_s=0).run()
            table.add(f"B = {slots}: segments to DuckDB", "k/s", _rate(count, begin))
            with slotscope.open(trace) as opened:
                begin = time.perf_counter()
                opened.history(1)
                table.add(
                    f"B = {slots}: history of a slot", "ms", (time.perf_counter() - begin) * 1e3
                )
            (trace / "live.duckdb").unlink()
            begin = time.perf_counter()
            slotscope.open(trace).close()
            table.add(f"B = {slots}: open from segments", "k/s", _rate(count, begin))
    return table


def _rate(count: int, begin_s: float) -> float:
    return count / (time.perf_counter() - begin_s) / 1e3
