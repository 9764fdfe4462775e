"""SpanWindow: of a trace that grows, the part that spans still to come lean on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from slotscope.instrument import store
from slotscope.instrument.arrow import events_table

from . import spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from slotscope.instrument.batch import Batch, Row

KEEP_SLACK_S = 60.0
"""Names of requests, and that a span was sent, are remembered this much longer than events: a name
comes before its first event, and of a span the time is known on another clock."""


class SpanWindow:
    """Events in, finished spans out, each once.

    A span is finished when its end is known and `settle_s` ago: what is said late, such as the
    write that a donate links to, is then there. Events are forgotten `keep_s` after they were
    written, unless something leans on them that was open until then: a request, a forward, a lease.
    """

    def __init__(self, uid: int, *, settle_s: float = 1.0, keep_s: float = 5.0) -> None:
        self._settle_ns = int(settle_s * 1e9)
        self._keep_ns = int(max(keep_s, settle_s) * 1e9)
        self._taken_ns = 0  # when spans were last looked for: what ended later is still to be sent
        self._con = store.connect(":memory:")
        self._con.execute("SET threads = 1")  # The collector has one of the two already.
        store.create(self._con)
        spans.install(self._con, uid)
        self._con.execute(
            "CREATE TABLE sent (span_id VARCHAR, event BIGINT, end_time_unix_nano BIGINT)"
        )

    def add(self, batch: Batch, processes: list[Row]) -> None:
        """Take in what was stored, with the generations that it was stored with, and who is there.

        They are not counted anew: this window may begin in the middle of a trace.
        """
        store.insert(self._con, "events", events_table(batch.events))
        for table in ("requests", "notes", "anchors"):
            store.insert(self._con, table, getattr(batch, table))
        self._con.execute("DELETE FROM processes")
        store.insert(self._con, "processes", processes)

    def take(self, *, rows: int, final: bool = False) -> Iterator[pa.RecordBatch]:
        """Finished spans that were not marked as sent; with `final`, open ones too."""
        self._taken_ns, settled_ns = time.monotonic_ns(), time.time_ns() - self._settle_ns
        self._con.execute(
            """
            CREATE OR REPLACE TEMP TABLE pass AS
            FROM spans_computed
            WHERE (? OR NOT open AND end_time_unix_nano <= ?)
              AND span_id NOT IN (SELECT span_id FROM sent)
            """,
            [final, settled_ns],
        )
        yield from self._con.sql("FROM pass").to_arrow_table().to_batches(rows)

    def mark(self, batch: pa.RecordBatch) -> None:
        """These were sent."""
        self._con.register("taken", batch)
        self._con.execute("INSERT INTO sent SELECT span_id, event, end_time_unix_nano FROM taken")
        self._con.unregister("taken")

    def forget(self, *, events_max: int) -> int:
        """After all that `take` gave was sent: drop what nothing leans on.

        Returns:
            Events that were dropped though something does lean on them, the oldest first, for there
            were more than `events_max`.
        """
        slack_ns = int(KEEP_SLACK_S * 1e9)
        cutoff_ns = self._taken_ns - self._keep_ns
        self._con.execute(_FORGET, {"cutoff_ns": cutoff_ns})
        excess = max(self.events - events_max, 0)
        if excess:
            self._con.execute(
                "DELETE FROM events WHERE rowid IN "
                "(SELECT rowid FROM events ORDER BY time_ns LIMIT ?)",
                [excess],
            )
        self._con.execute(
            """
            DELETE FROM sent
            WHERE if(event IS NULL, end_time_unix_nano < ?,
                     event NOT IN (SELECT writer::BIGINT << 40 | seq FROM events))
            """,
            [time.time_ns() - self._keep_ns - slack_ns],
        )
        self._con.execute(
            """
            DELETE FROM requests
            WHERE time_ns < ? AND (process, request) NOT IN
                  (SELECT (process, request) FROM events WHERE request IS NOT NULL)
            """,
            [cutoff_ns - slack_ns],
        )
        return excess

    @property
    def events(self) -> int:
        """Events in the window."""
        ((count,),) = self._con.execute("SELECT count(*) FROM events").fetchall()
        return int(count)

    def close(self) -> None:
        """Give the memory back."""
        self._con.close()


_FORGET = """
DELETE FROM events WHERE time_ns < $cutoff_ns AND rowid NOT IN (
    WITH running AS (
        SELECT process, request FROM events
        WHERE op IN ('request.begin', 'request.end', 'retract')
        GROUP BY ALL
        HAVING count(*) FILTER (op <> 'request.begin' AND time_ns < $cutoff_ns) = 0
    ), flying AS (
        SELECT process, forward FROM events
        WHERE op IN ('forward.launch', 'forward.done')
        GROUP BY ALL HAVING count(*) FILTER (op = 'forward.done' AND time_ns < $cutoff_ns) = 0
    ), lives AS (
        SELECT process, pool, slot, generation - (generation + 1) % 2 AS generation,
               count(*) FILTER (op = 'free') AS frees,
               count(*) FILTER (op = 'free' AND time_ns < $cutoff_ns) AS old_frees
        FROM events
        WHERE slot IS NOT NULL AND generation > 0
        GROUP BY ALL
    ), leased AS (
        -- What was said late of a life whose free is forgotten already makes it no lease again.
        SELECT process, pool, slot, generation FROM lives
        WHERE old_frees = 0
        QUALIFY frees > 0 OR generation = max(generation) OVER (PARTITION BY process, pool, slot)
    ), leaned AS (
        SELECT arg_min(e.rowid, position) FILTER (op = 'allocate') AS allocate,
               arg_max(e.rowid, (position, "order", seq))
                   FILTER (op = 'donate'
                           AND coalesce(outcome, 'ok') NOT IN ('suppressed', 'exists')) AS donate,
               arg_max(e.rowid, (position, "order", seq))
                   FILTER (op IN ('scatter', 'copy', 'advance', 'restore', 'clear', 'load_back',
                                  'transfer.receive')) AS write
        FROM events AS e JOIN leased USING (process, pool, slot, generation)
        GROUP BY process, pool, slot, generation
    )
    SELECT e.rowid FROM events AS e SEMI JOIN running USING (process, request)
    WHERE op IN ('request.begin', 'restore')
    UNION ALL
    SELECT e.rowid FROM events AS e SEMI JOIN flying USING (process, forward)
    WHERE op = 'forward.launch' OR launch IS NOT NULL
    UNION ALL
    SELECT allocate FROM leaned WHERE allocate IS NOT NULL
    UNION ALL
    SELECT donate FROM leaned WHERE donate IS NOT NULL
    UNION ALL
    SELECT write FROM leaned WHERE write IS NOT NULL
)
"""
