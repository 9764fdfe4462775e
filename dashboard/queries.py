"""What the pages ask: one function and one file of `sql/` for each question, without Streamlit.

A question is answered by anything that has `sql(text) -> pyarrow.Table`, such as `slotscope.open`'s
trace. Values enter the text as SQL literals, since the trace's connection takes text alone; they
pass through `literal`, which quotes strings and refuses what it doesn't know.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Protocol

import pyarrow as pa

MARKS_MAX = {"ownership": 2_000, "writes": 1_500, "marks": 1_500}
"""Marks of a layer on one chart: 5,000 in all. A layer with more is put on coarser pixels."""

PIXELS = 1_000
"""Columns of a chart that can be told apart."""

MARKS_PER_PIXEL = {"ownership": 1, "writes": 1, "marks": 5}
"""Marks that one lane may have in one pixel; `marks.sql` has one for each of its operations."""


class QueryError(ValueError):
    """A question that can't be put. The message says which value is at fault."""


class Source(Protocol):
    """A trace that answers SQL."""

    def sql(self, query: str, /) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a chart's horizontal axis lies. `unit` is time (seconds since `zero_ns`) or order."""

    process: int
    unit: str
    zero_ns: int
    low: float
    high: float

    def values(self) -> dict[str, Any]:
        return {
            "process": self.process,
            "axis": self.unit,
            "zero": self.zero_ns,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, slots=True)
class Filter:
    """What is shown of the slots; empty or None lets all through."""

    slots: tuple[int, ...] = ()
    request: str | None = None
    role: str | None = None
    ops: tuple[str, ...] = ()


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


def processes(source: Source) -> pa.Table:
    """One row per process, busiest first: events, first_ns, last_ns, positions, slots, ..."""
    return ask(source, "processes")


def freshness(source: Source) -> dict[str, Any]:
    """`state`: running, crashed or stopped; `until`: time of the last event (UTC), or None."""
    row: dict[str, Any] = ask(source, "freshness").to_pylist()[0]
    return row


def notes(source: Source, process: int) -> dict[str, str]:
    """What the process says of itself: engine, model, strategy, patches that are off."""
    rows = ask(source, "notes", process=process).to_pylist()
    return {row["key"]: row["value"] for row in rows}


def lanes(
    source: Source, axis: Axis, filter: Filter, *, limit: int, first: tuple[int, ...] = ()
) -> pa.Table:
    """Slots to draw: pool, slot, acts, leases; `total` counts those that would fit the filter.

    Where `limit` leaves some out, the slots in `first` stay, and then the busiest.
    """
    return ask(
        source, "lanes", **axis.values(), slots=filter.slots, request=filter.request,
        first=first, limit=limit,
    )  # fmt: skip


def _drawn(
    source: Source, name: str, axis: Axis, filter: Filter, lanes: tuple[int, ...]
) -> pa.Table:
    """The layer `name`, one mark per pixel; on as few pixels as keep it below MARKS_MAX."""

    def on(pixels: int) -> pa.Table:
        width = max(axis.high - axis.low, 1e-9) / pixels
        return ask(
            source, name, **axis.values(), lanes=lanes, pixel=width, role=filter.role,
            ops=filter.ops,
        )  # fmt: skip

    fine = on(PIXELS)
    if fine.num_rows <= MARKS_MAX[name]:
        return fine
    return on(max(MARKS_MAX[name] // (len(lanes) * MARKS_PER_PIXEL[name]) - 1, 1))


def ownership(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Stretches of one owner and role: pool, slot, generation, role, request, node, x, x2, held."""
    return _drawn(source, "ownership", axis, filter, lanes)


def writes(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Writes in flight, launch to result: pool, slot, forward, kind, ops, depth, x, x2, open."""
    return _drawn(source, "writes", axis, filter, lanes)


def marks(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Acts that move a state between owners: pool, slot, op, label, depth, node, x, folded."""
    return _drawn(source, "marks", axis, filter, lanes)


def density(source: Source, axis: Axis, *, bins: int) -> pa.Table:
    """Acts in each of `bins` equal parts of the axis: bin, acts. Empty parts are left out."""
    return ask(source, "density", **axis.values(), bins=bins)


def history(
    source: Source, axis: Axis, filter: Filter, *, pool: int, slot: int, limit: int
) -> pa.Table:
    """The events of one slot within the axis, in the order in which they took effect."""
    return ask(
        source, "history", **axis.values(), pool=pool, slot=slot, ops=filter.ops,
        role=filter.role, limit=limit,
    )  # fmt: skip


def requests(source: Source, axis: Axis, *, limit: int) -> pa.Table:
    """The latest requests that touched a slot, latest first: request_id, request, acts, ..."""
    return ask(source, "requests", **axis.values(), limit=limit)


def witness(source: Source, axis: Axis, events: tuple[int, ...]) -> pa.Table:
    """The events with these ids, in the order in which they took effect."""
    return ask(source, "witness", **axis.values(), events=events)


def around(
    source: Source, axis: Axis, *, pool: int, slot: int, events: tuple[int, ...]
) -> pa.Table:
    """The acts on a slot near the witness events of a finding, numbered by `turn` from 1."""
    return ask(
        source, "around", **axis.values(), pool=pool, slot=slot, events=events, reach=7, limit=48
    )
