"""A trace's tables as Parquet files, for tools that can't read DuckDB 2."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from slotscope.instrument.sealed.pack import BATCH_ROWS, TABLES
from slotscope.instrument.sealed.roll import SORTED

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb


def write(
    con: duckdb.DuckDBPyConnection, out: Path, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Write `events.parquet` and the other tables into a new directory; the number of events.

    Raises:
        OSError: it is there already, or can't be written.
    """
    out.mkdir(mode=0o700)
    count = 0
    for table in TABLES:
        order = f"ORDER BY {SORTED}" if table == "events" else ""
        reader: Any = con.sql(f"FROM {table} {order}").to_arrow_reader(BATCH_ROWS)
        with pq.ParquetWriter(out / f"{table}.parquet", reader.schema, compression="zstd") as file:
            for batch in reader:
                file.write_batch(batch)
                if table == "events":
                    count += batch.num_rows
                    progress(batch.num_rows)
    return count
