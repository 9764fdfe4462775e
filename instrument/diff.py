"""Diff: the first event where two traces part.

A schedule played twice says the same twice, so where two builds, flags or patches part is where
they first did another thing; everything later may follow from it. What is compared is what was said
and in which order. When it was said, and under which running numbers of the trace, is not: two
equal runs differ in that. Requests are paired by their first appearance; where both traces know the
same ids these must agree too, but a server makes them up.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .trace import Trace

Row = dict[str, Any]

_TELLS_WHEN = ("writer", "seq", '"order"', "position", "time_ns", "launch", "amends")
_QUERY = f"""
WITH met AS (
    SELECT request, row_number() OVER (ORDER BY min("order"), min(seq)) AS place
    FROM events
    WHERE process = $process AND request IS NOT NULL
    GROUP BY request
)
SELECT row_number() OVER (ORDER BY e."order", e.writer, e.seq) - 1 AS event,
       e.* EXCLUDE (process, {", ".join(_TELLS_WHEN)}) REPLACE (met.place AS request),
       r.request_id, r.attempt
FROM events e
LEFT JOIN met USING (request)
LEFT JOIN requests r ON r.process = e.process AND r.request = e.request
WHERE e.process = $process
ORDER BY event
"""


class Answer(StrEnum):
    """What a comparison came to."""

    SAME = "same"
    PART = "part"
    INCOMPARABLE = "incomparable"


@dataclass(frozen=True, slots=True)
class Side:
    """One trace where the two part. Columns that say nothing are left out of its rows."""

    event: Row | None  # None: the trace has ended
    histories: dict[int, list[Row]]  # slot that either side names -> its last events until here


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event that is not the same in both."""

    process: int  # of the first trace's processes, in the order in which they began, from 0
    event: int  # number of the event within its process, from 0
    columns: tuple[str, ...]  # that differ; empty where one of the two has ended
    before: list[Row]  # the last events that both have
    sides: tuple[Side, Side]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two traces beside each other."""

    answer: Answer
    events: int  # that are the same, until the two part
    why: str = ""  # they can't be compared
    parting: Parting | None = None

    @property
    def exit_code(self) -> int:
        """0 same, 1 part, 2 can't be compared."""
        return list(Answer).index(self.answer)

    def to_json(self) -> str:
        """For programs."""
        parting = self.parting
        told: Row = {"answer": self.answer, "events_same": self.events}
        if self.why:
            told["why"] = self.why
        if parting is not None:
            told |= {
                "process": parting.process,
                "event": parting.event,
                "columns": parting.columns,
                "before": parting.before,
            }
            for name, side in zip("ab", parting.sides, strict=True):
                told[name] = {"event": side.event, "histories": side.histories}
        return json.dumps(told, indent=2, default=str)


def compare(a: Trace, b: Trace, *, context: int = 8) -> Comparison:
    """Find where two traces part.

    Args:
        context: events that are kept of what was before, and of each slot's history.
    """
    processes = [_processes(trace) for trace in (a, b)]
    why = _incomparable(a, b, processes)
    if why:
        return Comparison(Answer.INCOMPARABLE, 0, why)
    same = 0
    for number, (mine, yours) in enumerate(zip(*processes, strict=True)):
        tables = (_events(a, mine), _events(b, yours))
        columns = _compared(*tables)
        at = _first_difference(*tables, columns)
        if at is not None:
            parting = _parting(number, at, tables, columns, context)
            return Comparison(Answer.PART, same + at, parting=parting)
        same += tables[0].num_rows
    return Comparison(Answer.SAME, same)


def _processes(trace: Trace) -> list[int]:
    rows = trace.sql("SELECT DISTINCT process FROM events ORDER BY process")
    return [int(process) for process in rows["process"].to_pylist()]


def _incomparable(a: Trace, b: Trace, processes: list[list[int]]) -> str:
    """Why a difference, or none, would prove nothing; empty if it does."""
    for trace, told in zip((a, b), processes, strict=True):
        if not told:
            return f"{trace.directory} holds no events. Was its engine told to trace?"
        (lost,) = trace.sql("SELECT count(*) AS n, sum(count) AS lost FROM gaps").to_pylist()
        if lost["n"]:
            return (
                f"{trace.directory} lost {lost['lost']} events in {lost['n']} gaps: what is "
                "missing there would look like a difference. Record it again; slotscope doctor "
                "tells why they were lost."
            )
    if len(processes[0]) != len(processes[1]):
        return (
            f"{a.directory} is of {len(processes[0])} processes, {b.directory} of "
            f"{len(processes[1])}: there is no saying which belong together."
        )
    return ""


def _events(trace: Trace, process: int) -> pa.Table:
    return trace.sql(_QUERY.replace("$process", str(process)))


def _compared(a: pa.Table, b: pa.Table) -> list[str]:
    """Columns that equal runs agree in."""
    ids = [set(table["request_id"].to_pylist()) for table in (a, b)]
    apart = {"event"} if ids[0] == ids[1] else {"event", "request_id"}
    return [name for name in a.column_names if name not in apart]


def _first_difference(a: pa.Table, b: pa.Table, columns: Sequence[str]) -> int | None:
    """Index of the first row that differs; that of the end of the shorter one if it is a prefix."""
    common = min(a.num_rows, b.num_rows)
    first = common
    for name in columns:
        differs = _differs(a[name].slice(0, first), b[name].slice(0, first))
        at = pc.index(differs, True).as_py()
        first = first if at < 0 else at
    return None if first == common and a.num_rows == b.num_rows else first


def _differs(a: pa.ChunkedArray, b: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(a.type):  # an enum, whose codes are those of its own table
        a, b = a.cast(pa.string()), b.cast(pa.string())
    unlike = pc.fill_null(pc.not_equal(a, b), False)
    return pc.or_(unlike, pc.xor(pc.is_null(a), pc.is_null(b)))


def _parting(
    process: int,
    at: int,
    tables: tuple[pa.Table, pa.Table],
    columns: Sequence[str],
    context: int,
) -> Parting:
    events = [_row(table, at) for table in tables]
    named = {
        slot
        for event in events
        if event is not None
        for slot in (event.get("slot"), event.get("src_slot"))
        if slot is not None
    }
    sides = [
        Side(event, {slot: _history(table, slot, at, context) for slot in sorted(named)})
        for event, table in zip(events, tables, strict=True)
    ]
    first, second = events
    unlike: Sequence[str] = ()
    if first is not None and second is not None:
        unlike = [name for name in columns if first.get(name) != second.get(name)]
    before = tables[0].slice(max(0, at - context), min(at, context))
    return Parting(process, at, tuple(unlike), _rows(before), (sides[0], sides[1]))


def _history(table: pa.Table, slot: int, at: int, context: int) -> list[Row]:
    """The slot's last events up to the parting one, acts that read it included."""
    until = table.slice(0, at + 1)
    names_it = pc.or_kleene(pc.equal(until["slot"], slot), pc.equal(until["src_slot"], slot))
    found = until.filter(names_it)
    return _rows(found.slice(max(0, found.num_rows - context)))


def _row(table: pa.Table, at: int) -> Row | None:
    return _rows(table.slice(at, 1))[0] if at < table.num_rows else None


def _rows(table: pa.Table) -> list[Row]:
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]
