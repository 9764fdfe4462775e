"""A report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from slotscope.instrument.findings import Finding, State, Verdict, event_name
from slotscope.instrument.plain import plain

FINDINGS_MAX = 10
"""Findings that are told; the rest are counted."""

_STYLES: dict[State, str] = {"found": "bold red", "clean": "green", "blind": "yellow"}


def board(verdicts: Sequence[Verdict], findings: Sequence[Finding]) -> RenderableType:
    """Findings, the worst first, then the verdicts, so that these are what stays on the screen."""
    parts: list[RenderableType] = [_panel(finding) for finding in findings[:FINDINGS_MAX]]
    if len(findings) > FINDINGS_MAX:
        parts.append(Text(f"... and {len(findings) - FINDINGS_MAX} more; see --json."))
    table = Table("detector", "verdict", "why", box=None, pad_edge=False)
    for verdict in verdicts:
        table.add_row(
            Text(f"{verdict.detector} {verdict.name}"),
            Text(verdict.verdict, style=_STYLES[verdict.verdict]),
            Text(plain(verdict.why)),
        )
    return Group(*parts, table)


def _panel(finding: Finding) -> RenderableType:
    # Text, not str: ids come from elsewhere and may hold what Rich takes for markup.
    witness = ", ".join(event_name(event) for event in finding.witness)
    lines = [Text(plain(finding.because)), Text(f"witness: {witness}", style="dim")]
    if finding.also:
        lines.append(Text(f"what follows from it: {_counted(finding.also)}", style="dim"))
    return Panel(
        Group(*lines),
        title=Text(plain(finding.title)),
        title_align="left",
        border_style=_STYLES["found"],
    )


def _counted(also: Sequence[Finding]) -> str:
    names = [f"{finding.detector} {finding.name}" for finding in also]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
