"""How fast a trace is stored, how soon it is there, what it weighs, and how fast it is read."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.progress import track
from support import traffic
from table import Table

import slotscope
from slotscope.instrument import check
from slotscope.instrument.collector import Collector
from slotscope.instrument.scan import Scan

EVENTS = 1_000_000
SUSTAINED = 4_000_000
"""Events of a backlog in which the collector's start weighs little."""
RATE = 200_000
"""Events per second of a writer that is not to lose any: a hundred times a busy engine's."""
VISIBLE_RATE, VISIBLE_S = 25_000, 8
"""Of each of two writers, while it is measured how soon their events are stored."""
POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Live:
    """Two writers and a collector at the same time."""

    rate: float  # stored rows per second, from the first event to the last commit
    lag_s_median: float  # from an event to its commit, the oldest event of each batch
    lag_s_max: float
    lost: int


def written(directory: Path, *, writers: int, events: int, rate: float) -> int:
    """Let processes write `events` each, and wait for them. Returns how many were lost."""
    return _lost([_writer(directory, events, rate) for _ in range(writers)])


def live(directory: Path, events: int, rate: float) -> Live:
    """Two writers of `events` each at `rate` each, collected meanwhile in this process."""
    writers = [_writer(directory, events, rate) for _ in range(2)]
    while not list(directory.glob("*.ctl")):
        time.sleep(POLL_S)
    collector = Collector(directory, linger_s=1)
    thread = threading.Thread(target=collector.run)
    thread.start()
    seen: list[tuple[int, int]] = [(0, 0)]  # events stored, when that was noticed
    while thread.is_alive():
        if collector.stored_count > seen[-1][0]:
            seen.append((collector.stored_count, time.monotonic_ns()))
        time.sleep(POLL_S)
    thread.join()
    lost = _lost(writers)
    with slotscope.open(directory, time_limit_s=0) as trace:
        rows = trace.connection.execute("SELECT time_ns FROM events ORDER BY time_ns").fetchnumpy()
    times = rows["time_ns"]
    lags = [
        (when - int(times[before])) / 1e9
        for (before, _), (_, when) in zip(seen[:-1], seen[1:], strict=True)
    ]
    took_s = (seen[-1][1] - int(times[0])) / 1e9
    return Live(len(times) / took_s, median(lags), max(lags), lost)


def _writer(directory: Path, events: int, rate: float) -> subprocess.Popen[str]:
    command = [sys.executable, traffic.__file__, str(directory), str(events), str(rate)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _lost(writers: list[subprocess.Popen[str]]) -> int:
    return sum(int(writer.communicate()[0]) for writer in writers)


def _backlog(table: Table, trace: Path) -> None:
    """A trace that nobody has collected yet: stored, weighed, read, judged."""
    lost = written(trace, writers=1, events=EVENTS, rate=RATE)
    table.notes.append(f"Backlog: {EVENTS:,} events of one writer at {RATE:,}/s, {lost} lost.")
    scan, count, begin = Scan(trace), 0, time.perf_counter()
    while not (batch := scan.batch()).empty:
        count += len(batch.events["seq"])
    table.add("backlog, segments to columns", "events/s", count / (time.perf_counter() - begin))
    segments = sum(path.stat().st_size for path in trace.iterdir())
    table.add("segments", "bytes/event", segments / count)
    begin = time.perf_counter()
    slotscope.open(trace).close()
    table.add("backlog, opened from segments", "events/s", count / (time.perf_counter() - begin))
    begin = time.perf_counter()
    Collector(trace, linger_s=0).run()
    rate = count / (time.perf_counter() - begin)
    table.add("backlog, segments to DuckDB", "events/s", rate)
    table.add("DuckDB", "bytes/event", (trace / "live.duckdb").stat().st_size / count)
    _read(table, trace)


def _sustained(table: Table, trace: Path) -> None:
    """A long backlog: what a collector stores that is never out of work, and what that takes."""
    lost = written(trace, writers=1, events=SUSTAINED, rate=RATE)
    collector = Collector(trace, linger_s=0)
    begin, begin_cpu = time.perf_counter(), time.process_time()
    collector.run()
    count = collector.stored_count
    rate = count / (time.perf_counter() - begin)
    cpu_s = (time.process_time() - begin_cpu) / count * 1e6
    name = f"backlog of {SUSTAINED:,}, segments to DuckDB"
    table.add(name, "events/s", rate, 1_000_000, "promise")
    table.add("CPU for a million of them", "s", cpu_s)
    table.notes.append(f"Long backlog: {lost} lost by its writer.")


def _read(table: Table, trace: Path) -> None:
    with slotscope.open(trace, time_limit_s=0) as opened:
        begin = time.perf_counter()
        opened.history(1)
        table.add("history of a slot", "ms", (time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        report = check.run(opened)
        table.add("judged by all detectors", "s", time.perf_counter() - begin)
    table.notes.append(f"The detectors' verdict on it: {report.verdict}.")


def run() -> Table:
    """A backlog, a long one, two writers at full pace, and two at the pace of a busy server."""
    table = Table("collector_rate", f"Storing a trace, and reading {EVENTS:,} events")
    steps = ("backlog", "sustained", "full pace", "visible")
    for step in track(steps, "collector_rate"):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace"
            if step == "backlog":
                _backlog(table, trace)
            elif step == "sustained":
                _sustained(table, trace)
            elif step == "full pace":
                found = live(trace, EVENTS, 2 * RATE)
                table.add("two writers at full pace", "events/s", found.rate)
                table.notes.append(
                    f"Full pace: 2 x {2 * RATE:,}/s wanted, on the cores that the collector "
                    f"shares with them; {found.lost} lost."
                )
            else:
                found = live(trace, VISIBLE_RATE * VISIBLE_S, VISIBLE_RATE)
                pace = f"at {2 * VISIBLE_RATE:,}/s"
                table.add(f"stored after, {pace}, median", "s", found.lag_s_median)
                table.add(f"stored after, {pace}, worst", "s", found.lag_s_max, 1.0, "promise")
    return table
