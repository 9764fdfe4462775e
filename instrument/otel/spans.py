"""The `spans` view: put it on a connection, and read it in batches."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from slotscope.instrument.schema import statements

from .ids import Domain, SpanIds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb
    import pyarrow as pa

FOLDER = "spans"
"""Of `instrument/sql`."""

LAST_OF_IDS = "span_trace_id"
"""Whatever comes before it in the order, and it, needs no table."""

BATCH_SPANS = 8192
"""Spans that are read at once."""


def install_ids(con: duckdb.DuckDBPyConnection, uid: int) -> None:
    """Create the macros that compute ids. They need no table.

    Raises:
        UidError: `uid` has not 64 bits.
    """
    ids = SpanIds(uid)
    for domain in Domain:
        name, seed = domain.name.lower(), ids.seed(domain)
        con.execute(f"CREATE OR REPLACE MACRO {name}_seed() AS {seed}::UBIGINT")
    _create(con, slice(None, _ids_count()))


def install(con: duckdb.DuckDBPyConnection, uid: int) -> None:
    """Create `spans` and what it stands on, over the relations events, requests, processes, notes
    and anchors of this connection.

    Raises:
        UidError: `uid` has not 64 bits.
    """
    install_ids(con, uid)
    con.execute("CREATE OR REPLACE TABLE span_trace (uid UBIGINT, version VARCHAR)")
    con.execute("INSERT INTO span_trace VALUES (?, ?)", [uid, version("slotscope")])
    _create(con, slice(_ids_count(), None))


def _ids_count() -> int:
    """How many of the objects compute ids and nothing else."""
    return list(statements(FOLDER)).index(LAST_OF_IDS) + 1


def _create(con: duckdb.DuckDBPyConnection, part: slice) -> None:
    for statement in list(statements(FOLDER).values())[part]:
        con.execute(statement)


def read(
    con: duckdb.DuckDBPyConnection, query: str = "FROM spans", *, rows: int = BATCH_SPANS
) -> Iterator[pa.RecordBatch]:
    """Spans as Arrow batches of at most `rows`. Keep the connection for nothing else meanwhile."""
    reader: Any = con.sql(query).to_arrow_reader(rows)
    yield from reader
