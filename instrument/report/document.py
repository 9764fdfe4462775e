"""A report as JSON. Event ids are numbers, writer << 40 | seq, as in SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from slotscope.instrument.findings import Finding, State, Verdict

FORMAT = 1
"""Grows when a key changes its meaning or goes away."""


def report_values(
    verdict: State,
    verdicts: Sequence[Verdict],
    findings: Sequence[Finding],
    notes: Mapping[int, Mapping[str, str]],
) -> dict[str, Any]:
    """The whole report; keys of findings are those of `Finding`."""
    return {
        "format": FORMAT,
        "verdict": verdict,
        "verdicts": [
            {
                "detector": each.detector,
                "name": each.name,
                "verdict": each.verdict,
                "found": each.found,
                "why": each.why,
                "blind_spots": list(each.blind_spots),
                "invariant": each.invariant,
            }
            for each in verdicts
        ],
        "findings": [finding_values(finding) for finding in findings],
        "notes": {str(process): dict(said) for process, said in notes.items()},
    }


def finding_values(finding: Finding) -> dict[str, Any]:
    """One finding, its consequences in it."""
    return {
        "detector": finding.detector,
        "name": finding.name,
        "severity": finding.severity,
        "process": finding.process,
        "pool": finding.pool,
        "slot": finding.slot,
        "generation": finding.generation,
        "request": finding.request,
        "request_id": finding.request_id,
        "forward": finding.forward,
        "position": finding.position,
        "time_ns": finding.time_ns,
        "witness": list(finding.witness),
        "because": finding.because,
        "sql": finding.sql,
        "events": list(finding.events),
        "also": [finding_values(consequence) for consequence in finding.also],
    }


def dumps(values: dict[str, Any]) -> str:
    """As text."""
    return json.dumps(values, indent=2, ensure_ascii=False)
