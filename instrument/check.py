"""Check: runs every detector over a trace, and says what was found, what is clean, who is blind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import duckdb

from . import detectors, fold
from .detectors import COLUMNS, Detector
from .findings import Finding, State, Verdict, ranked
from .report import Report
from .sight import Sight

FINDINGS_MAX = 10_000
"""Findings that are kept of one detector, the earliest ones; all are counted."""


class CheckError(RuntimeError):
    """A detector's query failed. The message names its file and what DuckDB said."""


class HasConnection(Protocol):
    """An open trace."""

    @property
    def connection(self) -> duckdb.DuckDBPyConnection: ...


def run(
    trace: HasConnection | duckdb.DuckDBPyConnection, chosen: Sequence[Detector] | None = None
) -> Report:
    """Judge a trace, or a connection that has its tables, by all detectors or the chosen ones.

    Raises:
        fold.FoldError: the trace's events can't be brought in order.
        CheckError: a detector failed.
    """
    con = trace if isinstance(trace, duckdb.DuckDBPyConnection) else trace.connection
    fold.prepare(con)
    notes = _notes(con)
    sight = Sight(con)
    verdicts, found = [], []
    chosen = detectors.load() if chosen is None else chosen
    for detector in chosen:
        findings, count = _findings(con, detector)
        verdicts.append(_verdict(detector, count, sight.blind_spots(detector)))
        found += findings
    causes = ranked(found, chosen)
    return Report(verdicts=tuple(verdicts), findings=tuple(_told(con, causes, notes)), notes=notes)


def _findings(con: duckdb.DuckDBPyConnection, detector: Detector) -> tuple[list[Finding], int]:
    """The earliest findings of a detector, and how many there are."""
    query = f"""
        SELECT {", ".join(COLUMNS)}, count(*) OVER () AS total
        FROM (
            {detector.sql}
        )
        ORDER BY process, position, witness
        LIMIT {FINDINGS_MAX}"""
    try:
        rows = con.execute(query).fetchall()
    except duckdb.Error as error:
        raise CheckError(
            f"detectors/{detector.file} failed, so the trace has no verdict of {detector.title}: "
            f"{error}."
        ) from error
    made = [
        Finding(
            detector=detector.id,
            name=detector.name,
            severity=detector.severity,
            request_id=None,
            **dict(zip(COLUMNS, row, strict=False)) | {"witness": tuple(row[8])},
        )
        for row in rows
    ]
    return made, rows[0][-1] if rows else 0


def _verdict(detector: Detector, count: int, spots: Sequence[str]) -> Verdict:
    state: State = "found" if count else "blind" if spots else "clean"
    if count:
        why = f"{count} contradiction{'s' if count > 1 else ''}."
        if count > FINDINGS_MAX:
            why += f" The first {FINDINGS_MAX} are shown."
        if spots:
            why += f" There may be more: {'; '.join(spots)}."
    elif spots:
        why = f"It could not look: {'; '.join(spots)}."
    else:
        why = "All that it needs was reported, and nothing contradicts."
    return Verdict(detector.id, detector.name, detector.invariant, state, count, why, tuple(spots))


def _notes(con: duckdb.DuckDBPyConnection) -> dict[int, dict[str, str]]:
    """What each process told about itself: the latest value of each key."""
    rows = con.execute(
        "SELECT process, key, arg_max(value, time_ns) FROM notes GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    notes: dict[int, dict[str, str]] = {}
    for process, key, value in rows:
        notes.setdefault(process, {})[key] = value
    return notes


def _told(
    con: duckdb.DuckDBPyConnection, causes: Sequence[Finding], notes: dict[int, dict[str, str]]
) -> Iterator[Finding]:
    """The findings with what readers want beside them: request ids, witness events, notes."""
    names = {
        (process, number): name
        for process, number, name in con.execute(
            "SELECT process, request, request_id FROM requests"
        ).fetchall()
    }
    events = _events(con, {event for cause in causes for event in cause.witness})

    def named(finding: Finding) -> Finding:
        request = (finding.process, -1 if finding.request is None else finding.request)
        return replace(finding, request_id=names.get(request))

    for cause in causes:
        yield replace(
            named(cause),
            also=tuple(named(finding) for finding in cause.also),
            events=tuple(events[event] for event in cause.witness),
            notes=tuple(notes.get(cause.process, {}).items()),
        )


def _events(con: duckdb.DuckDBPyConnection, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """The columns of some events that are not null, by event id."""
    cursor = con.execute(
        "SELECT * FROM seen WHERE event IN (SELECT unnest(?::BIGINT[]))", [sorted(wanted)]
    )
    assert cursor.description is not None, "a SELECT describes its columns"
    names = [column[0] for column in cursor.description]
    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return {row["event"]: {k: v for k, v in row.items() if v is not None} for row in rows}
