"""What a trace directory holds, counted without slotscope's own readers.

`committed` reads the commit words of the segments, and `stored` asks DuckDB alone, so that the two
can be compared after crashes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

import slotscope
from slotscope.instrument import layout, spawn
from tests.end_to_end.server import until


def committed(trace: Path) -> dict[int, int]:
    """Events that each writer says it has committed: writer -> count."""
    counts: Counter[int] = Counter()
    for path in trace.glob("p*.seg"):
        words = struct.unpack_from("<16q", path.read_bytes()[: layout.SEGMENT_HEADER_DATA])
        if owner := words[layout.WORD_OWNER]:
            counts[owner - 1] += words[layout.WORD_COMMIT] >> layout.COMMIT_SHIFT
    return {writer: count for writer, count in counts.items() if count}


def stored(trace: Path) -> dict[int, int]:
    """Events in live.duckdb: writer -> count. Fails if a number is missing, double or disordered.

    No collector may run.
    """
    with duckdb.connect(str(trace / "live.duckdb"), read_only=True) as con:
        rows = con.execute(
            "SELECT writer, count(*), count(DISTINCT seq), min(seq), max(seq) FROM events"
            " GROUP BY writer"
        ).fetchall()
        ((backwards,),) = con.execute(
            'SELECT count(*) FROM (SELECT "order" < lag("order") OVER (PARTITION BY writer'
            " ORDER BY seq) AS back FROM events) WHERE back"
        ).fetchall()
    for writer, count, distinct, first, last in rows:
        assert (distinct, first, last) == (count, 0, count - 1), f"writer {writer}"
    assert backwards == 0
    return {writer: count for writer, count, *_ in rows}


def collected(trace: Path) -> None:
    """Wait until no collector runs: one that is not killed leaves once it has stored all."""
    until(lambda: not spawn.locked(trace), "the collector's end")


def collector(trace: Path) -> int:
    """The process id of the collector, once it has named itself in the lock."""
    until(lambda: spawn.locked(trace), "a collector")
    until(lambda: _alive((trace / spawn.LOCK_NAME).read_text()), "the name of the collector")
    return int((trace / spawn.LOCK_NAME).read_text())


def kill_collector(trace: Path) -> int:
    """SIGKILL it, and wait until it is gone. Returns who it was."""
    pid = collector(trace)
    os.kill(pid, signal.SIGKILL)
    collected(trace)
    return pid


@contextmanager
def no_collector(trace: Path) -> Iterator[None]:
    """Keep collectors away: this process has their lock meanwhile."""
    with (trace / spawn.LOCK_NAME).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def from_segments(trace: Path, elsewhere: Path) -> dict[str, pa.Table]:
    """The trace's tables as its segments alone tell them."""
    elsewhere.mkdir()
    for path in (*trace.glob("p*.seg"), *trace.glob("p*.ctl")):
        shutil.copy(path, elsewhere)
    return tables(elsewhere, stored=False)


def tables(trace: Path, *, stored: bool) -> dict[str, pa.Table]:
    """The tables of a trace; `stored` says from where slotscope must have read them."""
    order = {"events": "writer, seq"}
    with slotscope.open(trace) as opened:
        assert opened.stored == stored
        return {
            name: opened.sql(f"FROM {name} ORDER BY {order.get(name, 'ALL')}")
            for name in ("events", "requests", "hooks", "notes", "gaps", "processes", "meta")
        }


def goes_on(seen: pa.Table, after: pa.Table) -> bool:
    """`after` holds each writer's events of `seen` as they were, and perhaps further ones."""
    for writer in pc.unique(seen["writer"]):
        before, now = (t.filter(pc.equal(t["writer"], writer)) for t in (seen, after))
        if not now.slice(0, before.num_rows).equals(before):
            return False
    return True


def _alive(pid: str) -> bool:
    return pid.isdigit() and Path(f"/proc/{pid}").exists()


def states(trace: Path) -> list[str]:
    """How each process of the trace ended."""
    with slotscope.open(trace) as opened:
        rows = opened.sql("SELECT state FROM processes ORDER BY process").to_pylist()
    return [row["state"] for row in rows]
