"""A trace as Chrome's JSON trace format, which Perfetto's UI opens: https://ui.perfetto.dev.

Each slot is a track: its leases are slices, the acts in them slices below, links are arrows. Each
request and forward is an asynchronous slice of its process. Times are microseconds since the
trace's first span, whose Unix time is `otherData.start_unix_ns`. Format: Trace Event Format,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

Event = dict[str, Any]

POOL_TRACKS = 1 << 24
"""Track numbers that are set apart for the slots of a pool."""

_ASYNC = """
SELECT process, name, span_id, attributes,
       start_time_unix_nano - (SELECT min(start_time_unix_nano) FROM spans) AS begin_ns,
       end_time_unix_nano - start_time_unix_nano AS size_ns
FROM spans
WHERE name IN ('request', 'forward') AND process IS NOT NULL
ORDER BY begin_ns
"""


def write(
    con: duckdb.DuckDBPyConnection,
    file: IO[str],
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the trace on whose `spans` the connection is; the number of acts.

    Raises:
        OSError: the file can't be written.
    """
    con.execute((files("slotscope.instrument.export") / "perfetto.sql").read_text())
    ((start_ns, acts),) = con.execute(
        "SELECT (SELECT coalesce(min(start_time_unix_nano), 0) FROM spans), "
        "(SELECT count(*) FROM perfetto_acts)"
    ).fetchall()
    file.write('{"displayTimeUnit": "ns", ')
    file.write(f'"otherData": {{"start_unix_ns": "{start_ns}"}}, "traceEvents": [')
    for index, event in enumerate(_events(con)):
        file.write(",\n" if index else "\n")
        file.write(json.dumps(event))
        progress(event["ph"] == "X" and event["cat"] == "act")
    file.write("\n]}\n")
    return int(acts)


def _events(con: duckdb.DuckDBPyConnection) -> Iterator[Event]:
    yield from _names(con)
    for row in _rows(con, "FROM perfetto_leases ORDER BY begin_ns"):
        size_ns = row["end_ns"] - row["begin_ns"]
        name = f"lease {row['lease']}"
        yield _on_slot(row) | {"ph": "X", "cat": "lease", "name": name, "dur": size_ns / 1e3}
    for row in _rows(con, "FROM perfetto_acts ORDER BY begin_ns"):
        told = {"ph": "X", "cat": "act", "name": row["name"], "dur": 1e-3}
        yield _on_slot(row) | told | {"args": json.loads(row["attributes"])}
    for row in _rows(con, "FROM perfetto_arrows ORDER BY id"):
        arrow = {"cat": "link", "name": "link", "id": row["id"]}
        origin = {key: row[f"from_{key}"] for key in ("process", "pool", "slot")}
        yield _on_slot(origin | {"begin_ns": row["from_ns"]}) | arrow | {"ph": "s"}
        yield _on_slot(row) | arrow | {"ph": "f", "bp": "e"}
    for row in _rows(con, _ASYNC):
        both = {"cat": row["name"], "name": row["name"], "id": row["span_id"]}
        both |= {"pid": row["process"], "tid": 0}
        begin_us = row["begin_ns"] / 1e3
        yield both | {"ph": "b", "ts": begin_us, "args": json.loads(row["attributes"])}
        yield both | {"ph": "e", "ts": begin_us + row["size_ns"] / 1e3}


def _names(con: duckdb.DuckDBPyConnection) -> Iterator[Event]:
    """What the processes and tracks are called."""
    for row in _rows(con, "SELECT process, command FROM processes ORDER BY process"):
        name = f"process {row['process']}: {row['command']}"
        told = {"ph": "M", "pid": row["process"], "tid": 0}
        yield told | {"name": "process_name", "args": {"name": name}}
    for row in _rows(con, "SELECT DISTINCT process, pool, slot FROM perfetto_acts ORDER BY ALL"):
        pool = f"pool {row['pool']} " if row["pool"] else ""
        told = {"ph": "M", "pid": row["process"], "tid": _track(row)}
        yield told | {"name": "thread_name", "args": {"name": f"{pool}slot {row['slot']}"}}


def _on_slot(row: Event) -> Event:
    return {"pid": row["process"], "tid": _track(row), "ts": row["begin_ns"] / 1e3}


def _track(row: Event) -> int:
    """The track of a slot; 0 is that of its process."""
    return int(row["pool"]) * POOL_TRACKS + int(row["slot"]) + 1


def _rows(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[Event]:
    reader: Any = con.sql(query).to_arrow_reader(8192)
    for batch in reader:
        yield from batch.to_pylist()
