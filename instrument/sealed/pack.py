"""Pack: a whole trace as one file, which `slotscope.open` reads like the directory it came from."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slotscope.instrument import store

from .roll import SORTED

if TYPE_CHECKING:
    from slotscope.instrument.trace import Trace

TABLES = ("meta", "processes", "hooks", "notes", "gaps", "anchors", "requests", "events")
BATCH_ROWS = 1 << 16


class PackError(ValueError):
    """A trace that can't be packed to where it shall go."""


def pack(trace: Trace, out: Path) -> int:
    """Write a trace, as it was when it was opened, into a new file; the number of its events.

    Raises:
        PackError: there is such a file already.
        OSError, duckdb.Error: it can't be written. Nothing is left behind.
    """
    if out.exists():
        raise PackError(f"{out} exists already, and nothing was written. Give another name.")
    fresh = out.with_name(out.name + ".new")
    fresh.unlink(missing_ok=True)
    # It holds what requests are called, as the trace does, so it is this user's alone as well.
    before = os.umask(0o077)
    try:
        with store.connect(fresh) as con, contextlib.closing(trace.connection) as source:
            store.create(con)
            for table in TABLES:
                order = f"ORDER BY {SORTED}" if table == "events" else ""
                rows: Any = source.sql(f"FROM {table} {order}").to_arrow_reader(BATCH_ROWS)
                con.register("rows", rows)
                con.execute(f"INSERT INTO {table} BY NAME FROM rows")
                con.unregister("rows")
            names = ("writer", "next_seq")
            progress = [dict(zip(names, pair, strict=True)) for pair in trace.watermark.items()]
            if progress:
                store.insert(con, "writers", pa.Table.from_pylist(progress))
            ((count,),) = con.execute("SELECT count(*) FROM events").fetchall()
        fresh.rename(out)
    finally:
        os.umask(before)
        fresh.unlink(missing_ok=True)
    return int(count)
