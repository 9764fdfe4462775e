"""Survey: all that was asked of one server, and what it comes to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from slotscope.instrument.findings import Finding
from slotscope.instrument.report.document import finding_values

from .grid import Geometry
from .trial import Result

FORMAT = 1
"""Of the JSON; grows when a key changes its meaning or goes away."""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Survey:
    """Results by cell, and why it ended early, if it did."""

    url: str
    speaks: str
    geometry: Geometry
    planned: int
    results: Sequence[Result]
    stopped: str = ""  # why the rest was not asked
    interrupted: bool = False
    traced: bool = False  # a trace was looked into
    findings: Mapping[int, tuple[Finding, ...]] = field(default_factory=dict)  # by cell

    @property
    def counts(self) -> Counter[str]:
        """Cells of each verdict."""
        return Counter(result.verdict for result in self.results)

    @property
    def exit_code(self) -> int:
        """1 a difference; 0 equal wherever it could be judged; 2 nothing judged, or cut short."""
        if self.counts["differs"]:
            return 1
        if self.interrupted:
            return INTERRUPTED
        return 0 if self.counts["equal"] and not self.stopped else 2

    @property
    def conclusion(self) -> str:
        """One or two sentences."""
        counts, judged = self.counts, self.counts["equal"] + self.counts["differs"]
        unjudged = ", ".join(f"{counts[v]} {v}" for v in _UNJUDGED if counts[v])
        rest = f" Not judged: {unjudged}." if unjudged else ""
        if counts["differs"]:
            said = f"The cache changes answers: {counts['differs']} of {judged} cells differ."
        elif counts["equal"]:
            said = f"Warm answers equal cold ones in all {judged} cells that could be judged."
        else:
            said = "Nothing could be judged."
        if not judged and self.results:
            rest += f" The first: {self.results[0].why}."
        if self.stopped:
            rest += f" Only {len(self.results)} of {self.planned} cells were asked: {self.stopped}"
        return said + rest

    def to_json(self) -> str:
        """One JSON document. Comparisons are those of the warm and of the second cold answer."""
        told = {
            "format": FORMAT,
            "url": self.url,
            "speaks": self.speaks,
            "geometry": asdict(self.geometry),
            "planned": self.planned,
            "stopped": self.stopped or None,
            "exit_code": self.exit_code,
            "conclusion": self.conclusion,
            "counts": dict(self.counts),
            "cells": [self._cell(result) for result in self.results],
        }
        return json.dumps(told, indent=2, ensure_ascii=False)

    def _cell(self, result: Result) -> dict[str, Any]:
        findings = self.findings.get(result.cell.index, ())
        told = asdict(result)
        told["warm"] = told["warm"] and told["warm"] | {"same": result.warm and result.warm.same}
        return told | {"findings": [finding_values(finding) for finding in findings]}


_UNJUDGED = ("tie", "unstable", "cold", "refused")
