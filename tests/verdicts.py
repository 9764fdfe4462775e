"""What detectors say of a history in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from histories import connect

from slotscope.instrument import check, detectors
from slotscope.instrument.findings import Finding, State
from slotscope.instrument.report import Report


@dataclass(frozen=True)
class Answer:
    """One detector's verdict, and all that it found, in time, consequences of others included."""

    verdict: State
    witness: list[list[int]]
    because: list[str]
    why: str


def checked(history: str, *, dead: Sequence[str] = ()) -> Report:
    """The report of all detectors; hooks of the ops in `dead` are dead."""
    with connect(history, dead=dead) as con:
        return check.run(con)


def judge(detector: str, history: str, *, dead: Sequence[str] = ()) -> Answer:
    """What one detector, `D1`, says."""
    with connect(history, dead=dead) as con:
        report = check.run(con, [d for d in detectors.load() if d.id == detector])
    (verdict,) = report.verdicts
    found = sorted(everything(report.findings), key=lambda f: (f.process, f.position))
    return Answer(
        verdict.verdict,
        [list(finding.witness) for finding in found],
        [finding.because for finding in found],
        verdict.why,
    )


def everything(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Causes and consequences."""
    for finding in findings:
        yield finding
        yield from finding.also


def witnesses(detector: str, *histories: str) -> list[list[list[int]]]:
    """What one detector finds in each history: its witnesses. They are judged as one trace, each a
    process of its own, since making a trace takes longer than judging it."""
    found: list[list[list[int]]] = [[] for _ in histories]
    with connect(" | ".join(histories)) as con:
        report = check.run(con, [d for d in detectors.load() if d.id == detector])
    for finding in sorted(everything(report.findings), key=lambda f: (f.process, f.position)):
        events = [event & ((1 << 40) - 1) for event in finding.witness]
        found[finding.process].append(events)
    return found
