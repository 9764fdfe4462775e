"""Trace: what a trace directory holds, as SQL. The same rows be it growing, finished or crashed."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from threading import Lock
from types import TracebackType

import duckdb
import pyarrow as pa

from . import schema, spawn, store
from .arrow import enum_ddl
from .control import ControlError
from .otel import spans
from .scan import Scan
from .schema import SchemaError
from .sealed import manifest, roll
from .sealed.attach import attach, define
from .sealed.manifest import SealedError
from .sealed.roll import quoted

__all__ = ["QueryError", "SchemaError", "Trace", "TraceError", "open"]

TIME_LIMIT_S = 60.0
MEMORY = "4GB"
ATTEMPTS = 5
"""To read a trace from which a collector seals segments away meanwhile."""

_TABLES = ("events", "requests", "hooks", "notes", "anchors", "meta")
"""What does not depend on when it is asked. The others, gaps and processes, do."""

_LASTING = {duckdb.StatementType.DETACH, duckdb.StatementType.TRANSACTION}
"""What a rollback does not undo, or what ends the transaction that would be rolled back."""


class TraceError(ValueError):
    """A directory that can't be read as a trace. The message says why, and what would do."""


class QueryError(ValueError):
    """A query that was refused, failed, or took too long."""


class Trace:
    """A trace as it was when it was opened. Use as a context manager, or `close` it.

    Tables and views: events, requests, hooks, notes, gaps, anchors, processes, forwards, leases,
    slots, ownership, relays, spans; macros: history(slot), owner_at(slot, position),
    in_flight_at(position), lineage(slot, generation). See docs/sql.md.
    """

    stored: bool
    """It is read from DuckDB; otherwise from the segments."""

    def __init__(
        self, directory: Path, *, time_limit_s: float = TIME_LIMIT_S, memory_limit: str = MEMORY
    ) -> None:
        self.directory = directory
        self._scan = Scan(directory)
        self._tables: store.Tables | None = None  # where what comes is appended
        self._sealed: int | None = None  # the latest generation
        self._spans, self._spans_lock = False, Lock()
        # Said here, the time limit holds for every cursor; as a later SET, for this one alone.
        self._con = store.connect(
            ":memory:",
            max_execution_time=int(time_limit_s * 1000),
            memory_limit=memory_limit,
        )
        self._con.execute("SET max_execution_time = 0")
        try:
            self._scan.look()
            stored = (directory / store.NAME).exists() or manifest.latest(directory) is not None
            if not (self._scan.registered or stored or directory.is_file()):
                raise TraceError(
                    f"{directory} holds no trace: neither a process's p000000.ctl nor {store.NAME} "
                    "is in it. Give the directory that `--trace` named."
                )
            self.stored = self._unpack() or self._attach() or self._expand()
            self._define()
            # From here on, SQL reaches nothing but what is attached, and can't change that.
            self._con.execute("SET enable_external_access = false")
            self._con.execute("SET lock_configuration = true")
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A connection on the trace's tables that may make temporary tables, and nothing outside.

        It counts as one of this trace's: close the trace when done.
        """
        return self._con.cursor()

    @property
    def live(self) -> bool:
        """A process may still add events."""
        return any(image.state == "running" for image in self._scan.images.values())

    @property
    def watermark(self) -> dict[int, int]:
        """writer -> seq of its first event that is not in this trace."""
        return dict(self._scan.next_seq)

    def grown(self) -> bool:
        """There is more in the directory than was read."""
        return self._scan.grown() or self._sealed != manifest.latest(self.directory)

    def catch_up(self) -> bool:
        """Take in what has come since, at the cost of that alone; every query sees all or nothing.

        Returns:
            False if it can't, for the trace is read from DuckDB, or part of it was sealed
            meanwhile: open it again.

        Raises:
            duckdb.Error: nothing was taken in, and nothing will be: open it again.
        """
        if self._tables is None:
            return False
        con = self._con
        con.execute("BEGIN")
        try:
            self._tables.append(self._scan.batch(inf))
            self._tell()
            if self._sealed != manifest.latest(self.directory):
                con.execute("ROLLBACK")
                return False
            con.execute("COMMIT")
        except BaseException:
            con.execute("ROLLBACK")
            raise
        return True

    def sql(self, query: str) -> pa.Table:
        """The answer to one statement. Whatever the statement changes is undone after it.

        Raises:
            QueryError: it is not one statement, it fails, or it exceeds the time or memory limit.
        """
        if "span" in query.lower():
            self.define_spans()
        con = self._con.cursor()
        try:
            statements = con.extract_statements(query)
            if len(statements) != 1:
                raise QueryError(f"{len(statements)} statements were given; give one.")
            if statements[0].type in _LASTING:
                raise QueryError(f"{statements[0].type.name} is refused: it could not be undone.")
            con.execute("BEGIN")
            result = con.sql(query)
            return pa.table({}) if result is None else result.to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        finally:
            con.close()  # Rolls back.

    def define_spans(self) -> None:
        """Make the `spans` view, as `sql` does for a query that names it. It takes half a second,
        so a trace is opened without it."""
        with self._spans_lock:
            if not self._spans:
                ((uid,),) = self._con.execute("SELECT trace_uid FROM meta").fetchall()
                spans.install(self._con, uid)
                self._spans = True

    def history(self, slot: int, pool: int = 0) -> pa.Table:
        """All that happened to a slot, in the order in which it took effect."""
        return self.sql(f"FROM history({int(slot)}, p := {int(pool)})")

    def slots(self) -> pa.Table:
        """One row per slot: its lives, its events, and who has it now."""
        return self.sql("FROM slots ORDER BY process, pool, slot")

    def close(self) -> None:
        """Give everything back."""
        self._con.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _unpack(self) -> bool:
        """Read a packed trace, or one generation alone.

        Raises:
            TraceError: a file of another kind.
        """
        path, con = self.directory, self._con
        if not path.is_file():
            return False
        try:
            con.execute(f"ATTACH '{quoted(path)}' AS stored (READ_ONLY)")
            store.check_version(con, "stored.meta", path)
            beside = con.execute("SELECT count(*) FROM stored.sealed").fetchone()
        except duckdb.Error as error:
            raise TraceError(
                f"{path} is no packed trace: {error}. Give a trace directory, or what slotscope "
                "pack wrote."
            ) from error
        if path.name == store.NAME or beside != (0,):
            raise TraceError(f"{path} is a part of a trace. Give its directory: {path.parent}.")
        store.resume(con, "stored.", self._scan)
        self._define_stored(["stored"])
        con.execute("CREATE TABLE gaps AS FROM stored.gaps")
        return True

    def _define_stored(self, parts: list[str]) -> None:
        for statement in enum_ddl():
            self._con.execute(statement)
        define(self._con, parts, _TABLES)
        self._con.execute("CREATE TABLE processes AS FROM stored.processes")

    def _attach(self) -> bool:
        """Read from DuckDB, if a collector has stored all there is and none has the file open."""
        path = self.directory / store.NAME
        if not path.exists() or spawn.locked(self.directory):
            return False
        try:
            self._con.execute(f"ATTACH '{quoted(path)}' AS stored (READ_ONLY)")
        except duckdb.Error:
            return False  # A collector has just opened it, or it is damaged: the segments know.
        store.check_version(self._con, "stored.meta", path)
        store.resume(self._con, "stored.", self._scan)
        if self._scan.grown():
            self._con.execute("DETACH stored")
            self._scan = Scan(self.directory)
            return False
        sealed = self._con.execute("SELECT number FROM stored.sealed ORDER BY number").fetchall()
        parts = attach(self._con, self.directory, (number for (number,) in sealed))
        self._sealed = manifest.latest(self.directory)
        self._define_stored([*parts, "stored"])
        self._con.execute("CREATE TABLE gaps AS FROM stored.gaps WHERE NOT open")
        return True

    def _expand(self) -> bool:
        """Read what is sealed, and the rest from the segments. Always False: that is not stored.

        Raises:
            TraceError: segments were sealed and dropped as fast as they were read.
        """
        for _ in range(ATTEMPTS):
            found = manifest.find(self.directory)
            self._sealed = found[-1].number if found else None
            try:
                parts = attach(self._con, self.directory, (each.number for each in found))
            except SealedError:
                if manifest.find(self.directory) == found:
                    raise
                parts = []  # Retention has dropped it meanwhile.
            else:
                self._grow(parts)
            # Segments are dropped only once a manifest tells of a generation that has them.
            if self._sealed == manifest.latest(self.directory) and len(parts) == len(found):
                for statement in enum_ddl():
                    self._con.execute(statement)
                return False
            self._forget(parts)
        raise TraceError(
            f"{self.directory} is sealed faster than it can be read. Seal less often: give the "
            "collector more --roll-events."
        )

    def _grow(self, parts: list[str]) -> None:
        """Expand segments from where the latest part ends."""
        con = self._con
        con.execute("CREATE SCHEMA fresh")
        con.execute("USE memory.fresh")
        store.create(con)
        con.execute("USE memory.main")
        if parts:
            store.check_version(con, f"{parts[-1]}.meta", self.directory / "gen-*.duckdb")
            store.resume(con, f"{parts[-1]}.", self._scan)
            for table in roll.COPIED:
                con.execute(f"INSERT INTO fresh.{table} FROM {parts[-1]}.{table}")
        else:
            self._scan.look()
            con.execute("INSERT INTO fresh.meta VALUES (?, ?)", [schema.VERSION, self._scan.uid])
        self._tables = store.Tables(con, "fresh", parts[-1] if parts else None)
        self._tables.resume()
        self._tables.append(self._scan.batch(inf))
        define(con, [*parts, "fresh"], (*_TABLES, "gaps", "processes"))

    def _forget(self, parts: list[str]) -> None:
        """Take back an expansion that was overtaken."""
        for statement in (
            *(f"DROP VIEW IF EXISTS {table}" for table in (*_TABLES, "gaps", "processes")),
            "DROP SCHEMA IF EXISTS fresh CASCADE",
            *(f"DETACH {part}" for part in parts),
        ):
            self._con.execute(statement)
        self._tables = None
        self._scan = Scan(self.directory)

    def _define(self) -> None:
        """Make what is computed: who is there now, open gaps, views and macros."""
        con = self._con
        if self._scan.registered:
            self._tell()
        for folder in ("views", "macros"):
            for statement in schema.statements(folder).values():
                con.execute(statement)

    def _tell(self) -> None:
        """Say how each process is by now, and what it lost without a record that tells of it."""
        at = "main" if self.stored else "fresh"
        self._con.execute(f"DELETE FROM {at}.processes")
        store.insert(self._con, f"{at}.processes", self._scan.processes())
        self._con.execute(f"DELETE FROM {at}.gaps WHERE open")
        store.insert(self._con, f"{at}.gaps", self._scan.open_gaps())


def open(
    trace_dir: str | os.PathLike[str],
    *,
    time_limit_s: float = TIME_LIMIT_S,
    memory_limit: str = MEMORY,
) -> Trace:
    """Read a trace directory as it is now, or a file that `slotscope pack` made of one.

    Args:
        time_limit_s: a query that takes longer fails; 0 means no limit.
        memory_limit: of all of this trace's queries together.

    Raises:
        TraceError: there is no trace, or not one that this slotscope can read.
        SchemaError: the trace was stored under an unknown schema version.
    """
    directory = Path(trace_dir).absolute()
    if not directory.exists():
        raise TraceError(
            f"{directory} is no directory and no packed trace. Give the directory that `--trace` "
            "named, or what slotscope pack wrote."
        )
    try:
        return Trace(directory, time_limit_s=time_limit_s, memory_limit=memory_limit)
    except SealedError as error:
        raise TraceError(str(error)) from error
    except (ControlError, PermissionError) as error:
        raise TraceError(f"{directory} can't be read: {error}.") from error
