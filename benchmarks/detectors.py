"""What a check takes: the fold and each detector, on a long trace of legal serving.

Sixty requests decode together, each for 250 turns; each leaves a checkpoint every 64 turns, donates
the last one, and its slots serve the next. Nothing contradicts, so detectors must read all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import duckdb
from rich.progress import track
from table import Table

from slotscope.instrument import check, detectors, fold, schema
from slotscope.instrument.arrow import enum_ddl, events_ddl
from slotscope.instrument.event import Op, op_name

EVENTS = (1_000_000, 10_000_000)
PROMISE_S = 10.0
"""For all detectors on 10 M events, on 2 cores."""

SEATS, TURNS, INTERVAL = 60, 250, 64

# Orders 1000 apart for each turn leave room for all that is said in it.
SERVING = f"""
WITH turn AS (
    SELECT t, t * 1000 AS o, t // {TURNS} AS life, t % {TURNS} AS d FROM range($turns) r(t)
),
seat AS (SELECT * FROM turn, range({SEATS}) r(i)),
said AS (
    SELECT o + 2 * i AS "order", NULL AS launch, 'allocate' AS op, 1 + i AS slot, 'live' AS role,
           life * {SEATS} + i AS request, t AS forward, NULL AS src, NULL AS d0, NULL AS d1,
           NULL AS node FROM seat WHERE d = 0
    UNION ALL SELECT o + 2 * i + 1, NULL, 'allocate', {SEATS + 1} + i, 'keep',
           life * {SEATS} + i, t, NULL, NULL, NULL, NULL FROM seat WHERE d = 0
    UNION ALL SELECT o + 200, NULL, 'forward.launch', NULL, NULL, NULL, t, NULL, NULL, NULL, NULL
           FROM turn
    UNION ALL SELECT o + 201 + i, o + 200, 'clear', 1 + i, 'live',
           life * {SEATS} + i, t, NULL, NULL, 0, NULL FROM seat WHERE d = 0
    UNION ALL SELECT o + 301 + i, o + 200, 'advance', 1 + i, 'live',
           life * {SEATS} + i, t, NULL, d, d + 1, NULL FROM seat
    UNION ALL SELECT o + 401 + i, o + 200, 'copy', {SEATS + 1} + i, 'keep',
           life * {SEATS} + i, t, 1 + i, NULL, d + 1, NULL
           FROM seat WHERE (d + 1) % {INTERVAL} = 0
    UNION ALL SELECT o + 500, o + 200, 'forward.done', NULL, NULL, NULL, t, NULL, NULL, NULL, NULL
           FROM turn
    UNION ALL SELECT o + 501 + 8 * i + k, NULL,
           ['request.end', 'donate', 'insert', 'evict', 'free', 'free'][k + 1],
           CASE k WHEN 0 THEN NULL WHEN 5 THEN 1 + i ELSE {SEATS + 1} + i END,
           CASE k WHEN 0 THEN NULL WHEN 5 THEN 'live' ELSE 'keep' END,
           life * {SEATS} + i, t, NULL, NULL, NULL, life * {SEATS} + i
           FROM seat, range(6) r(k) WHERE d = {TURNS - 1}
)
SELECT 0 AS process, 0 AS writer, row_number() OVER (ORDER BY "order") - 1 AS seq, "order",
       COALESCE(launch, "order") AS position, launch, "order" * 1000 AS time_ns, op, role, request,
       forward, 0 AS stream, CASE WHEN slot IS NOT NULL THEN 0 END AS pool, slot,
       CASE WHEN slot IS NOT NULL THEN 2 * (forward // {TURNS}) + 1 END AS generation,
       src AS src_slot, d0 AS depth_before, d1 AS depth, node,
       CASE WHEN op IN ('donate', 'insert') THEN {TURNS // INTERVAL * INTERVAL} END AS label
FROM said ORDER BY "order"
"""


def run() -> Table:
    """Seconds for each step, by size of the trace."""
    table = Table("detectors", "slotscope check: seconds for each step")
    for events in track(EVENTS, "detectors"):
        con = _serving(events)
        size = f"{events // 1_000_000} M events"
        spent = [_timed(table, f"{size}: fold", partial(fold.prepare, con))]
        for detector in detectors.load():
            judge = partial(con.execute, f"CREATE OR REPLACE TEMP TABLE found AS {detector.sql}")
            spent.append(_timed(table, f"{size}: {detector.title}", judge))
        promised = events == max(EVENTS)
        table.add(
            f"{size}: all", "s", sum(spent), *((PROMISE_S, "the promise") if promised else ())
        )
        found = check.run(con)
        assert found.exit_code == 0, [verdict.why for verdict in found.verdicts]
        con.close()
    table.notes.append("Wall time; all traces are in memory, and clean.")
    return table


def _timed(table: Table, name: str, work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    spent = time.perf_counter() - start
    table.add(name, "s", spent)
    return spent


def _serving(events: int) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    tables = schema.statements("tables")
    con.execute(";\n".join([*enum_ddl(), events_ddl()[0], *tables.values()]))
    con.execute(f"INSERT INTO events BY NAME ({SERVING})", {"turns": events // (SEATS + 3)})
    con.execute(
        "INSERT INTO hooks SELECT 0, 'benchmark', op, true, 0 FROM (SELECT unnest($1) AS op)",
        [[op_name(op) for op in Op]],
    )
    return con
