"""Findings and verdicts: what contradicts, who could look, and which finding explains which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from typing import Any, Literal

from .detectors import Detector, Via

State = Literal["found", "clean", "blind"]

SEVERITIES = ("corruption", "hazard", "capacity")
"""Worst first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one detector can say of a trace. Blind is not clean: it could not look at all of it."""

    detector: str  # D1
    name: str
    invariant: str
    verdict: State
    found: int  # contradictions, consequences of others included
    why: str  # one sentence: how many, or what it could not see
    blind_spots: tuple[str, ...] = ()  # what it could not see; also where it found something


@dataclass(frozen=True, slots=True)
class Finding:
    """One contradiction, with the events that show it and the sentence that argues from them."""

    detector: str
    name: str
    severity: str
    process: int
    pool: int | None
    slot: int | None
    generation: int | None
    request: int | None
    request_id: str | None
    forward: int | None
    position: int
    time_ns: int | None
    witness: tuple[int, ...]  # event ids, writer << 40 | seq
    because: str
    also: tuple[Finding, ...] = ()  # its consequences, in order
    events: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # the witness's columns
    notes: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # on its process

    @property
    def title(self) -> str:
        """One line that names the detector, the slot and the request."""
        where = f"slot {self.slot}" if self.slot is not None else f"forward {self.forward}"
        whose = self.request_id or self.request
        by = f", request {whose}" if whose is not None else ""
        return f"{self.detector} {self.name}: {where}{by}"

    @property
    def sql(self) -> str:
        """A query on the trace that shows the witness again."""
        named = ", ".join(f"({event >> 40}, {event & ((1 << 40) - 1)})" for event in self.witness)
        return (
            f"SELECT * FROM events\nWHERE (writer, seq) IN ({named})\n"
            'ORDER BY process, position, "order", seq'
        )

    def markdown(self) -> str:
        """The finding as the text of an issue."""
        from .report.markdown import finding_text  # the renderer needs this module

        return finding_text(self)


def event_name(event: int) -> str:
    """How people read an event id: `writer.seq`."""
    return f"{event >> 40}.{event & ((1 << 40) - 1)}"


def ranked(findings: Iterable[Finding], detectors: Sequence[Detector]) -> tuple[Finding, ...]:
    """Causes, worst and earliest first, each with the findings that follow from it.

    A detector's header says what it explains: later findings of certain detectors on the same
    lease, slot or request; of two in one act, what explains the other is earlier. A consequence of
    a consequence belongs to the cause of both.
    """
    order = _order(detectors)
    in_time = sorted(findings, key=lambda f: (f.process, f.position, order[f.detector]))
    causes = _Causes(detectors)
    folded: dict[int, list[Finding]] = {}
    for place, finding in enumerate(in_time):
        folded.setdefault(causes.root(place, finding), []).append(finding)
    roots = [replace(first, also=tuple(rest)) for first, *rest in folded.values()]
    roots.sort(key=lambda f: (SEVERITIES.index(f.severity), f.process, f.position))
    return tuple(roots)


def _order(detectors: Sequence[Detector]) -> dict[str, int]:
    """Detectors by number, but each behind those that explain it. Two that explain each other
    stay as they are."""
    explains = {each.id: {other for other, _ in each.explains} for each in detectors}
    before = {
        each: [o for o in explains if each in explains[o] and o not in explains[each]]
        for each in explains
    }
    return {each: place for place, each in enumerate(TopologicalSorter(before).static_order())}


class _Causes:
    """Remembers, for whatever findings may have in common, the latest cause that explains more."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._explains = {detector.id: detector.explains for detector in detectors}
        self._latest: dict[tuple[str, Via, tuple[int, ...]], int] = {}

    def root(self, place: int, finding: Finding) -> int:
        """The place of the finding's first cause; its own if nothing explains it."""
        keys = _in_common(finding)
        known = [
            self._latest[key]
            for via, thing in keys.items()
            if (key := (finding.detector, via, thing)) in self._latest
        ]
        root = min(known, default=place)
        for other, via in self._explains[finding.detector]:
            if via in keys:
                self._latest[other, via, keys[via]] = root
        return root


def _in_common(finding: Finding) -> dict[Via, tuple[int, ...]]:
    """What another finding may share with it."""
    common: dict[Via, tuple[int, ...]] = {}
    if finding.slot is not None and finding.pool is not None:
        common["slot"] = (finding.process, finding.pool, finding.slot)
        if finding.generation is not None:
            common["lease"] = (*common["slot"], finding.generation)
    if finding.request is not None:
        common["request"] = (finding.process, finding.request)
    return common
