"""Store: the DuckDB file of a trace. Only the collector opens it for writing, and only once.

A process that opens the file a second time and closes it again loses its lock on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from . import expand, schema
from .arrow import enum_ddl, events_ddl, events_table
from .batch import Batch, Offset, Row
from .expand import Events
from .generations import Generations, slot_of
from .scan import Scan

NAME = "live.duckdb"
THREADS = 2
MEMORY = "1GB"
_FACTS = ("requests", "hooks", "notes", "anchors")


class StoreError(RuntimeError):
    """The DuckDB file can't be opened. The message names it, and says what to do."""


class Busy(StoreError):
    """Another process has the file open."""


def connect(path: Path | str, **settings: Any) -> duckdb.DuckDBPyConnection:
    """A connection that fetches no extensions and takes little of the machine."""
    config: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": THREADS,
        "memory_limit": MEMORY,
    }
    return duckdb.connect(str(path), config=config | settings)


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the types and tables of a trace."""
    for statement in (*enum_ddl(), *events_ddl(), *schema.statements("tables").values()):
        con.execute(statement)


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: list[Row] | pa.Table) -> None:
    """Append rows to a table, column by name."""
    arrow = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    if arrow.num_rows:
        con.register("fresh", arrow)
        con.execute(f"INSERT INTO {table} BY NAME FROM fresh")
        con.unregister("fresh")


class Tables:
    """The tables of a trace on some connection, and the state that numbers generations."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con
        self.generations = Generations()

    def append(self, batch: Batch) -> None:
        """Append the rows of a batch, its gaps included, each event with its generation."""
        stale = self.generations.assign(batch.events)
        insert(self.con, "events", events_table(batch.events))
        for table in (*_FACTS, "gaps"):
            insert(self.con, table, getattr(batch, table))
        if len(stale):
            self._renumber([slot_of(key) for key in stale.tolist()])

    def _renumber(self, slots: list[tuple[int, int, int]]) -> None:
        """Count the generations of some slots again, from all their stored changes."""
        names = ("process", "pool", "slot")
        rows = [dict(zip(names, slot, strict=True)) for slot in slots]
        self.con.register("stale", pa.Table.from_pylist(rows))
        for slot, generation in (("slot", "generation"), ("src_slot", "src_generation")):
            self.con.execute(_RENUMBER.format(slot=slot, generation=generation))
        self.con.unregister("stale")


_RENUMBER = """
UPDATE events SET {generation} = counted.lives
FROM (
    SELECT act.id, coalesce(change.lives, 0) AS lives
    FROM (
        SELECT rowid AS id, process, pool, {slot} AS slot, position
        FROM events SEMI JOIN stale
          ON events.process = stale.process AND events.pool = stale.pool
         AND events.{slot} = stale.slot
    ) AS act
    ASOF LEFT JOIN (
        SELECT process, pool, slot, "order",
               row_number() OVER (PARTITION BY process, pool, slot ORDER BY "order") AS lives
        FROM events SEMI JOIN stale USING (process, pool, slot)
        WHERE op IN ('allocate', 'free') AND outcome IS DISTINCT FROM 'failed'
    ) AS change
      ON act.process = change.process AND act.pool = change.pool AND act.slot = change.slot
     AND act.position >= change."order"
) AS counted
WHERE events.rowid = counted.id
"""


class Store:
    """The open file."""

    def __init__(self, path: Path, uid: int) -> None:
        """Open it, or make it.

        Raises:
            StoreError: another process has it open, or its schema version is unknown.
        """
        self.path = path
        try:
            self._con = connect(path)
        except duckdb.Error as error:
            if "set lock on file" in str(error):
                raise Busy(
                    f"{path} is open elsewhere. Collecting goes on once it is closed, nothing is "
                    f"lost meanwhile. DuckDB says: {error}"
                ) from error
            raise StoreError(
                f"{path} can't be opened: {error}. Remove it: it is made anew from the segments."
            ) from error
        known = self._con.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'meta'"
        ).fetchall()
        if known == [(0,)]:
            self._con.execute("BEGIN")
            create(self._con)
            self._con.execute("INSERT INTO meta VALUES (?, ?)", [schema.VERSION, uid])
            self._con.execute("COMMIT")
        check_version(self._con, "meta", path)
        self._tables = Tables(self._con)
        self._resume_generations()

    def resume(self, scan: Scan) -> None:
        """Move a scan to where this store stands."""
        resume(self._con, "", scan)

    def facts(self) -> Batch:
        """Requests, notes and anchors that are stored, for who comes in the middle of a trace."""
        names = ("requests", "notes", "anchors")
        return Batch(**{n: self._con.sql(f"FROM {n}").to_arrow_table().to_pylist() for n in names})

    def append(
        self, batch: Batch, processes: list[Row], open_gaps: list[Row], next_seq: dict[int, int]
    ) -> None:
        """Store a batch and what is known of processes and gaps, all or nothing.

        Raises:
            duckdb.Error: nothing is stored. This object, and the scan, can't be used any more.
        """
        con = self._con
        con.execute("BEGIN")
        try:
            self._tables.append(batch)
            con.execute("DELETE FROM gaps WHERE open")
            insert(con, "gaps", open_gaps)
            con.execute("DELETE FROM processes")
            insert(con, "processes", processes)
            self._note_progress(batch.offsets, next_seq)
            con.execute("COMMIT")
        except BaseException:
            con.execute("ROLLBACK")
            raise

    def checkpoint(self) -> None:
        """Move what is committed from the log into the file."""
        self._con.execute("CHECKPOINT")

    def close(self) -> None:
        """Checkpoint and close."""
        self._con.close()

    def _note_progress(self, read: list[Offset], next_seq: dict[int, int]) -> None:
        offsets = [
            {"process": o.process, "segment": o.segment}
            | {"bytes": o.bytes, "events": o.events, "done": o.done}
            for o in read
        ]
        writers = [{"writer": w, "next_seq": seq} for w, seq in next_seq.items()]
        for table, rows in (("offsets", offsets), ("writers", writers)):
            if rows:
                self._con.register("fresh", pa.Table.from_pylist(rows))
                self._con.execute(f"INSERT OR REPLACE INTO {table} BY NAME FROM fresh")
                self._con.unregister("fresh")

    def _resume_generations(self) -> None:
        changes = self._con.sql(
            'SELECT process, pool, slot, "order", position FROM events '
            "WHERE op IN ('allocate', 'free') AND slot IS NOT NULL "
            "AND outcome IS DISTINCT FROM 'failed'"
        ).to_arrow_table()
        events: Events = expand.empty(changes.num_rows)
        for name in changes.column_names:
            events[name] = changes[name].to_numpy()
        judged = self._con.execute(
            "SELECT process, max(position) FROM events GROUP BY process"
        ).fetchall()
        self._tables.generations.resume(events, dict(judged))


def check_version(con: duckdb.DuckDBPyConnection, meta: str, path: Path) -> None:
    """Refuse a file that another slotscope wrote.

    Raises:
        SchemaError: unknown schema version.
    """
    (found,) = con.execute(f"SELECT schema_version FROM {meta}").fetchall()[0]
    if found != schema.VERSION:
        raise schema.SchemaError(
            f"{path} has schema version {found}; this slotscope knows version {schema.VERSION}. "
            "Open it with the slotscope that wrote it, or remove the file: with the segments still "
            "beside it, nothing is lost."
        )


def resume(con: duckdb.DuckDBPyConnection, prefix: str, scan: Scan) -> None:
    """Move a scan to where the stored tables of that prefix stand."""
    offsets = [Offset(*row) for row in con.execute(f"FROM {prefix}offsets").fetchall()]
    writers = dict(con.execute(f"FROM {prefix}writers").fetchall())
    gaps = con.sql(f"FROM {prefix}gaps WHERE NOT open").to_arrow_table().to_pylist()
    anchors = con.execute(f"SELECT DISTINCT process FROM {prefix}anchors").fetchall()
    scan.resume(offsets, writers, gaps, {process for (process,) in anchors})
