"""A finding, or a whole report, as Markdown that can be pasted into an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from slotscope.instrument.findings import Finding, Verdict, event_name

CONSEQUENCES_MAX = 20
"""Consequences that are told with their argument; the rest are counted."""

_COLUMNS = (
    "op", "kind", "role", "outcome", "process", "slot", "generation", "request", "forward",
    "launch", "position", "order", "src_slot", "depth_before", "depth", "label", "grid",
    "accept_len", "node",
)  # fmt: skip


def report_text(verdicts: Sequence[Verdict], findings: Sequence[Finding]) -> str:
    """Verdicts as a table, then each finding."""
    rows = [["detector", "verdict", "why"]] + [
        [f"{v.detector} {v.name}", f"**{v.verdict}**", v.why] for v in verdicts
    ]
    return "\n\n".join(["# slotscope check", _table(rows), *map(finding_text, findings)]) + "\n"


def finding_text(finding: Finding) -> str:
    """Title, argument, witness, consequences, environment, and the query that shows it again."""
    parts = [f"## {plain(finding.title)}", plain(finding.because)]
    if finding.events:
        parts += ["### Witness", _witness(finding.events)]
    if finding.also:
        parts += [f"### What follows from it ({len(finding.also)})", _consequences(finding.also)]
    if finding.notes:
        notes = [["of the process", "value"], *([key, value] for key, value in finding.notes)]
        parts += ["### Environment", _table(notes)]
    parts += ["### See it again", f"```sql\n{finding.sql}\n```"]
    return "\n\n".join(parts)


def plain(text: str) -> str:
    """Text in which nothing is markup, on one line: ids and notes come from elsewhere."""
    printable = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", printable)


def _witness(events: Sequence[dict[str, Any]]) -> str:
    used = [name for name in _COLUMNS if any(name in event for event in events)]
    rows = [["event", *used]]
    for event in events:
        cells = ["" if (value := event.get(name)) is None else str(value) for name in used]
        rows.append([event_name(event["event"]), *cells])
    return _table(rows)


def _consequences(also: Sequence[Finding]) -> str:
    lines = [f"- {each.detector}: {plain(each.because)}" for each in also[:CONSEQUENCES_MAX]]
    if len(also) > CONSEQUENCES_MAX:
        lines.append(f"- and {len(also) - CONSEQUENCES_MAX} more")
    return "\n".join(lines)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    bold = re.fullmatch(r"\*\*(\w+)\*\*", text)
    return text if bold or text == "---" else plain(text)
