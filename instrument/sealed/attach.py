"""Attach: generations as a reader sees them, and tables as unions over them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from . import manifest
from .manifest import SealedError
from .roll import MOVED, quoted


def attach(con: duckdb.DuckDBPyConnection, directory: Path, numbers: Iterable[int]) -> list[str]:
    """Attach generations read-only; the name of each.

    Raises:
        SealedError: one is missing, or is no DuckDB file any more.
    """
    names = []
    for number in numbers:
        path = directory / manifest.data_name(number)
        name = f"gen_{number:06d}"
        try:
            con.execute(f"ATTACH '{quoted(path)}' AS {name} (READ_ONLY)")
        except duckdb.Error as error:
            raise SealedError(
                f"{path} can't be read: {error}. Restore it from a copy, or remove it and its "
                ".json to go on without the events that it holds."
            ) from error
        names.append(name)
    return names


def define(con: duckdb.DuckDBPyConnection, parts: list[str], tables: Iterable[str]) -> None:
    """Make views of tables that lie in several parts of a trace, the latest part last.

    Only events and requests are spread over the parts; of the others the latest part has all.
    """
    for table in tables:
        spread = parts if table in MOVED else parts[-1:]
        union = " UNION ALL ".join(f"SELECT * FROM {part}.{table}" for part in spread)
        con.execute(f"CREATE VIEW {table} AS {union}")
