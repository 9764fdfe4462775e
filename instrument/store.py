"""Store: the DuckDB file of a trace. Only the collector opens it for writing, and only once.

A process that opens the file a second time and closes it again loses its lock on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from . import expand, schema
from .arrow import enum_ddl, events_ddl, events_table
from .batch import Batch, Offset, Row
from .expand import Events
from .generations import CHANGED, Generations, slot_of
from .scan import Scan
from .sealed import manifest, roll

NAME = "live.duckdb"
THREADS = 2
MEMORY = "1GB"
_FACTS = ("requests", "hooks", "notes", "anchors")


class StoreError(RuntimeError):
    """The DuckDB file can't be opened. The message names it, and says what to do."""


class Busy(StoreError):
    """Another process has the file open."""


def connect(path: Path | str, **settings: Any) -> duckdb.DuckDBPyConnection:
    """A connection that fetches no extensions, takes little of the machine, and prints nothing."""
    config: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": THREADS,
        "memory_limit": MEMORY,
    }
    con = duckdb.connect(str(path), config=config | settings)
    con.execute("SET enable_progress_bar = false")  # Of this connection, not of its cursors.
    return con


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

    sealed: str | None
    """The attached generation that holds what came right before these tables."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, schema: str = "main", sealed: str | None = None
    ) -> None:
        self.con, self.sealed = con, sealed
        self._schema = schema
        self._generations = Generations()

    def resume(self) -> None:
        """Go on numbering generations behind what is stored and sealed."""
        changes = self.con.sql(
            f'SELECT process, pool, slot, "order", position FROM {self._told()} WHERE {CHANGED}'
        ).to_arrow_table()
        lives = self.con.sql(f"FROM {self._before}").to_arrow_table()
        judged = self.con.execute(
            f"SELECT process, max(position) FROM {self._told()} GROUP BY process"
        ).fetchall()
        known: Events = expand.empty(changes.num_rows)
        known |= {name: changes[name].to_numpy() for name in changes.column_names}
        before = {name: lives[name].to_numpy() for name in lives.column_names}
        self._generations.resume(known, dict(judged), before)

    def append(self, batch: Batch) -> None:
        """Append the rows of a batch, its gaps included, each event with its generation."""
        stale = self._generations.assign(batch.events)
        insert(self.con, f"{self._schema}.events", events_table(batch.events))
        for table in (*_FACTS, "gaps"):
            insert(self.con, f"{self._schema}.{table}", getattr(batch, table))
        if len(stale):
            self._renumber([slot_of(key) for key in stale.tolist()])

    def _renumber(self, slots: list[tuple[int, int, int]]) -> None:
        """Count the generations of some slots again, from all their stored changes."""
        names = ("process", "pool", "slot")
        rows = [dict(zip(names, slot, strict=True)) for slot in slots]
        self.con.register("stale", pa.Table.from_pylist(rows))
        told = {"told": self._told(), "before": self._before}
        for slot, generation in (("slot", "generation"), ("src_slot", "src_generation")):
            counted = {"slot": slot, "generation": generation} | told
            self.con.execute(_RENUMBER.format(acts=f"{self._schema}.events", **counted))
            if self.sealed is not None:
                acts = f"{self.sealed}.events"
                self.con.execute(
                    _TOO_LATE.format(acts=acts, gaps=f"{self._schema}.gaps", **counted)
                )
        self.con.unregister("stale")

    def _told(self) -> str:
        """Events whose changes are counted one by one."""
        sealed = "" if self.sealed is None else f"FROM {self.sealed}.events UNION ALL BY NAME "
        return f"({sealed}FROM {self._schema}.events)"

    @property
    def _before(self) -> str:
        """The changes before those, as sums."""
        return f"{self.sealed or self._schema}.lives"


_COUNTED = f"""
    SELECT act.id, coalesce(change.lives, 0) + coalesce(before.changes, 0) AS lives
    FROM (
        SELECT rowid AS id, process, pool, {{slot}} AS slot, position
        FROM {{acts}} AS acts SEMI JOIN stale
          ON acts.process = stale.process AND acts.pool = stale.pool
         AND acts.{{slot}} = stale.slot
    ) AS act
    ASOF LEFT JOIN (
        SELECT process, pool, slot, "order",
               row_number() OVER (PARTITION BY process, pool, slot ORDER BY "order") AS lives
        FROM {{told}} SEMI JOIN stale USING (process, pool, slot)
        WHERE {CHANGED}
    ) AS change
      ON act.process = change.process AND act.pool = change.pool AND act.slot = change.slot
     AND act.position >= change."order"
    LEFT JOIN {{before}} AS before
      ON act.process = before.process AND act.pool = before.pool AND act.slot = before.slot
"""

_RENUMBER = f"""
UPDATE {{acts}} AS acts SET {{generation}} = counted.lives
FROM ({_COUNTED}) AS counted
WHERE acts.rowid = counted.id
"""

_TOO_LATE = f"""
INSERT INTO {{gaps}} BY NAME
SELECT process, 'late' AS reason, count(*) AS count, FALSE AS open,
       'an allocate or free was read after events that it precedes were sealed' AS detail
FROM {{acts}} AS acts JOIN ({_COUNTED}) AS counted ON acts.rowid = counted.id
WHERE acts.{{generation}} <> counted.lives
GROUP BY process
"""
"""What is sealed does not change. Detectors must not trust generations that are wrong in it."""


class Store:
    """The open file."""

    open_events: int
    """Events that are in no generation yet."""

    open_since_ns: int
    """CLOCK_MONOTONIC of the first of them."""

    def __init__(self, path: Path, uid: int) -> None:
        """Open it, or make it.

        Raises:
            StoreError: another process has it open, or it is damaged.
            SchemaError: its schema version is unknown.
            SealedError: a generation that it counts on is missing.
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
            self._make(uid)
        check_version(self._con, "meta", path)
        roll.repair(self._con, path.parent)
        self._tables = Tables(self._con, sealed=self._latest())
        self._tables.resume()
        ((self.open_events, self.open_since_ns),) = self._con.execute(
            "SELECT count(*), coalesce(min(time_ns), 0) FROM events"
        ).fetchall()

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
        count = len(batch.events["seq"])
        if count and not self.open_events:
            self.open_since_ns = int(batch.events["time_ns"].min())
        self.open_events += count

    def seal(self) -> None:
        """Move all events into a generation, and drop the segments that it holds whole.

        Raises:
            duckdb.Error, OSError: no room for it, for example. Nothing has changed.
            SealedError: the generation could not be read back as it was written.
        """
        try:
            for _ in self.sealing():
                pass
        except (duckdb.Error, OSError, manifest.SealedError):
            roll.abandon(self._con, self.path.parent)
            raise

    def sealing(self) -> Iterator[str]:
        """The same step by step; the name of each that is done."""
        yield from roll.steps(self._con, self.path.parent, create)
        self._tables.sealed = self._latest()
        self.open_events = 0

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

    def _make(self, uid: int) -> None:
        """Make the tables. Where there are generations already, go on from the latest."""
        found = manifest.find(self.path.parent)
        if found:
            path = self.path.parent / manifest.data_name(found[-1].number)
            self._con.execute(f"ATTACH '{roll.quoted(path)}' AS former (READ_ONLY)")
            check_version(self._con, "former.meta", path)
        self._con.execute("BEGIN")
        create(self._con)
        if found:
            for table in roll.COPIED:
                self._con.execute(f"INSERT INTO main.{table} FROM former.{table}")
            rows: list[Row] = [{"number": each.number} for each in found]
            insert(self._con, "sealed", rows)
        else:
            self._con.execute("INSERT INTO meta VALUES (?, ?)", [schema.VERSION, uid])
        self._con.execute("COMMIT")
        self._con.execute("DETACH DATABASE IF EXISTS former")

    def _latest(self) -> str | None:
        return roll.LATEST if roll.next_number(self._con) else None


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
