"""Schema: the SQL files, one object each, and the order in which they are created."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

VERSION = 2
"""Of the stored tables. Raise it with any change of them, and say in the changelog what changed.

1: the first. 2: `lives` and `sealed`, for sealed generations.
"""

_SQL = files("slotscope.instrument") / "sql"


class SchemaError(ValueError):
    """A stored trace of a schema that this slotscope does not know, or SQL files out of order."""


@cache
def statements(folder: str) -> dict[str, str]:
    """The objects of a folder of `sql/`, by name, in the order of its `_order` file.

    Raises:
        SchemaError: a file is not in the order, or the order names a file that is not there.
    """
    directory = _SQL / folder
    order = (directory / "_order").read_text().split()
    there = {f.name.removesuffix(".sql") for f in directory.iterdir() if f.name.endswith(".sql")}
    if set(order) != there or len(order) != len(there):
        raise SchemaError(
            f"sql/{folder}/_order and the files beside it differ in "
            f"{', '.join(sorted(there.symmetric_difference(order)) or order)}. List each file once."
        )
    return {name: (directory / f"{name}.sql").read_text() for name in order}
