"""Putting a question: a file of `sql/`, its values filled in, answered by a trace.

A question is answered by anything that has `sql(text) -> pyarrow.Table`, such as `slotscope.open`'s
trace. Values enter the text as SQL literals, since the trace's connection takes text alone; they
pass through `literal`, which quotes strings and refuses what it doesn't know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Protocol

import pyarrow as pa


class QueryError(ValueError):
    """A question that can't be put. The message says which value is at fault."""


class Source(Protocol):
    """A trace that answers SQL."""

    def sql(self, query: str, /) -> pa.Table: ...


def literal(value: object) -> str:
    """The SQL literal of a value: None, bool, int, float, str, or a tuple of one kind of these.

    Raises:
        QueryError: a value of another type, or a float that is no number.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise QueryError(f"{value} has no place on an axis: give a finite number.")
        return f"{value!r}::DOUBLE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("\0", "") + "'"
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal, value))}]"
    raise QueryError(f"{value!r} is a {type(value).__name__}, which has no SQL literal here.")


@cache
def text(name: str) -> str:
    """The file `sql/<name>.sql`, without its comments, so that a `$` in one is no parameter."""
    body = resources.files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("--"))


def render(name: str, values: Mapping[str, object]) -> str:
    """The question `name` with its values filled in, runnable as it stands.

    Raises:
        QueryError: the file names a value that isn't given.
    """
    body = text(name)
    if re.search(r"\bacts\b", body) and name != "acts":
        body = f"WITH acts AS ({text('acts')})\nSELECT * FROM (\n{body}\n)"

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise QueryError(f"sql/{name}.sql names ${match[1]}, which was not given.")
        return literal(values[match[1]])

    return re.sub(r"\$([a-z_]+)", fill, body)


def ask(source: Source, name: str, **values: object) -> pa.Table:
    """Put the question `sql/<name>.sql`."""
    return source.sql(render(name, values))
