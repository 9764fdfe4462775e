"""Roll: moves what `live.duckdb` holds into a generation. It can be killed anywhere.

What happens in the transaction on `live.duckdb` is what has happened: a generation that it does not
name is removed when the file is opened next, and the rows are still in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from slotscope.instrument import layout, schema
from slotscope.instrument.generations import CHANGED

from . import manifest
from .manifest import Manifest, SealedError

LATEST = "latest"
"""How the collector's connection calls the generation that was sealed last."""

MOVED = ("events", "requests")
"""Tables that a roll empties. The others are copied, for they are small and count on."""

COPIED = ("meta", "processes", "hooks", "notes", "gaps", "anchors", "offsets", "writers")

SORTED = 'process, pool, slot, "order", seq'

_SUM = "SELECT count(*), bit_xor(hash(e)) FROM {0}.events AS e"


def steps(
    con: duckdb.DuckDBPyConnection,
    directory: Path,
    create: Callable[[duckdb.DuckDBPyConnection], None],
) -> Iterator[str]:
    """Roll, and say after each step what is done.

    Args:
        con: on `live.duckdb`, outside a transaction.
        create: makes the tables of a trace.

    Raises:
        duckdb.Error, OSError: no room, for example. Unless it comes after `committed`, `abandon`
            leaves everything as it was.
        SealedError: what was written is not what was read.
    """
    number = next_number(con)
    path = directory / manifest.data_name(number)
    fresh = path.with_suffix(".duckdb.new")
    _write(con, fresh, create)
    yield "written"
    _rename(fresh, path)
    yield "named"
    told = _manifest(con, path, number)
    told.write(directory)
    yield "told"
    _commit(con, number)
    yield "committed"
    # A torn end of the log is dropped silently, so segments stay until it is in the file.
    con.execute("CHECKPOINT")
    yield "checkpointed"
    open_latest(con, directory)
    drop_segments(con, directory)
    yield "dropped"


def next_number(con: duckdb.DuckDBPyConnection) -> int:
    """Of the generation that comes next."""
    ((number,),) = con.execute("SELECT coalesce(max(number) + 1, 0) FROM main.sealed").fetchall()
    return int(number)


def repair(con: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Undo a roll that was cut short, or finish one that was committed.

    Raises:
        SealedError: a generation that was committed is missing.
    """
    known = {number for (number,) in con.execute("SELECT number FROM main.sealed").fetchall()}
    kept = {manifest.data_name(n) for n in known} | {manifest.manifest_name(n) for n in known}
    # The manifest goes first: who sees it counts on the file.
    for path in sorted(directory.glob(manifest.FILES), key=lambda p: ".json" not in p.name):
        if path.name not in kept:
            path.unlink()
    for name in sorted(kept):
        if not (directory / name).exists():
            raise SealedError(
                f"{directory / name} is missing, and live.duckdb counts on it. Restore it from a "
                "copy; without one, the events that it held are lost."
            )
    if known:
        open_latest(con, directory)
        drop_segments(con, directory)


def abandon(con: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Take back what `steps` did before it failed."""
    con.execute("DETACH DATABASE IF EXISTS sealing")
    number = next_number(con)
    for name in (manifest.manifest_name(number), manifest.data_name(number)):
        for path in directory.glob(f"{name}*"):
            if path.is_file():
                path.unlink()


def open_latest(con: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Attach the latest generation under `LATEST`, in the place of the one before it."""
    con.execute(f"DETACH DATABASE IF EXISTS {LATEST}")
    path = directory / manifest.data_name(next_number(con) - 1)
    con.execute(f"ATTACH '{quoted(path)}' AS {LATEST} (READ_ONLY)")


def drop_segments(con: duckdb.DuckDBPyConnection, directory: Path) -> None:
    """Remove segments that generations hold whole. The latest one says how far each was read."""
    read = con.execute(
        f"SELECT process, segment FROM {LATEST}.offsets WHERE done AND segment >= 0"
    ).fetchall()
    names = {layout.segment_name(*segment) for segment in read}
    for path in directory.glob(layout.SEGMENT_FILES):
        if path.name in names:
            path.unlink(missing_ok=True)


def quoted(text: object) -> str:
    """For a place between single quotes."""
    return str(text).replace("'", "''")


def _write(
    con: duckdb.DuckDBPyConnection,
    fresh: Path,
    create: Callable[[duckdb.DuckDBPyConnection], None],
) -> None:
    ((live,),) = con.execute("SELECT current_database()").fetchall()
    fresh.unlink(missing_ok=True)
    con.execute(f"ATTACH '{quoted(fresh)}' AS sealing")
    con.execute("USE sealing")
    try:
        create(con)
    finally:
        con.execute(f"USE {live}")
    for table in (*MOVED, *COPIED):
        order = f"ORDER BY {SORTED}" if table == "events" else ""
        con.execute(f"INSERT INTO sealing.{table} FROM main.{table} {order}")
    if next_number(con):
        con.execute(_LIVES)
    con.execute("CHECKPOINT sealing")
    wrote, read = (con.execute(_SUM.format(of)).fetchall() for of in ("sealing", "main"))
    con.execute("DETACH sealing")
    if wrote != read:
        raise SealedError(
            f"{fresh} holds {wrote} (events and their sum), and {read} was written to it. The disk "
            "or the memory of this machine does not keep what it is given."
        )


_LIVES = f"""
INSERT INTO sealing.lives BY NAME
SELECT process, pool, slot, sum(changes)::BIGINT AS changes
FROM (
    FROM {LATEST}.lives
    UNION ALL
    SELECT process, pool, slot, count(*)
    FROM {LATEST}.events
    WHERE {CHANGED}
    GROUP BY ALL
)
GROUP BY ALL
"""


def _rename(fresh: Path, path: Path) -> None:
    with fresh.open("rb+") as file:
        os.fsync(file.fileno())
    fresh.rename(path)


def _manifest(con: duckdb.DuckDBPyConnection, path: Path, number: int) -> Manifest:
    ((uid, events, first_ns, last_ns),) = con.execute(
        "SELECT (SELECT trace_uid FROM main.meta), count(*), coalesce(min(time_ns), 0), "
        "coalesce(max(time_ns), 0) FROM main.events"
    ).fetchall()
    return Manifest(
        number=number,
        schema_version=schema.VERSION,
        trace_uid=uid,
        events=events,
        first_ns=first_ns,
        last_ns=last_ns,
        sealed_ns=time.time_ns(),
        bytes=path.stat().st_size,
        sha256=manifest.digest(path),
    )


def _commit(con: duckdb.DuckDBPyConnection, number: int) -> None:
    con.execute("BEGIN")
    try:
        con.execute("INSERT INTO main.sealed VALUES (?)", [number])
        for table in MOVED:
            con.execute(f"DELETE FROM main.{table}")
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise
