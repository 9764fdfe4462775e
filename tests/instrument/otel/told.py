"""Traces from histories, with the tables that spans need beside events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import histories

from slotscope.instrument.otel import spans

UID = 0xFEDCBA9876543210
BOOT_NS = 1_700_000_000_000_000_000
"""Unix time of the histories' monotonic zero; their events lie 1000 ns apart."""

TABLES = """
DROP TABLE requests;
DROP TABLE notes;
CREATE TABLE requests (process INTEGER, request INTEGER, request_id VARCHAR, attempt INTEGER,
    client_id VARCHAR, trace_parent VARCHAR, "order" BIGINT, time_ns BIGINT);
CREATE TABLE notes (process INTEGER, key VARCHAR, value VARCHAR, time_ns BIGINT);
CREATE TABLE anchors (process INTEGER, monotonic_ns BIGINT, realtime_ns BIGINT);
CREATE TABLE processes (process INTEGER, pid INTEGER, state VARCHAR, started_ns BIGINT,
    command VARCHAR, host VARCHAR, python VARCHAR, error VARCHAR);
"""

STORY = (
    "r0+@500 r0+live3 P7 7:3@0 7:3@0>64 /7 3!64n9 n9+3@64 r0-@501 "
    "r1+@100 n9?3@64 r1+live4 P8 8:4<3@64n9 -3 8:4@64>100 r1+spare? V9 9:r1?@100 9:4@100+3"
)
"""Two requests: the first leaves a checkpoint, the second restores it and is still running."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as its client sent it."""

    request: int
    request_id: str
    trace_parent: str | None = None
    client_id: str | None = None
    process: int = 0


def tell(history: str = STORY, *requests: Asked) -> duckdb.DuckDBPyConnection:
    """A connection with the history's events and their spans."""
    con = histories.connect(history)
    con.execute(TABLES)
    for (process,) in con.execute("SELECT DISTINCT process FROM events").fetchall():
        con.execute("INSERT INTO anchors VALUES (?, 0, ?)", [process, BOOT_NS])
        con.execute(
            "INSERT INTO processes VALUES (?, ?, 'running', 0, 'serve --x', 'box', '3.11', NULL)",
            [process, 100 + process],
        )
    for r in requests:
        con.execute(
            "INSERT INTO requests VALUES (?, ?, ?, 0, ?, ?, 0, 0)",
            [r.process, r.request, r.request_id, r.client_id, r.trace_parent],
        )
    spans.install(con, UID)
    return con


def rows(con: duckdb.DuckDBPyConnection, query: str = "FROM spans") -> list[dict[str, Any]]:
    """Rows of a query as dictionaries."""
    answer = con.execute(query)
    names = [name for name, *_ in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


@cache
def story() -> list[dict[str, Any]]:
    """All spans of `STORY`. Planning the view takes a while, so tests share them."""
    return rows(tell())
