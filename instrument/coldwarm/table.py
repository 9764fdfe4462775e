"""A survey for a terminal: one row for each cell, then what it comes to."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .survey import Survey
from .trial import Result, Verdict

FINDINGS_MAX = 3
"""Findings that are told for each cell; the rest are counted."""

_STYLES: dict[Verdict, str] = {
    "equal": "green",
    "differs": "bold red",
    "tie": "yellow",
    "unstable": "yellow",
    "cold": "yellow",
    "refused": "yellow",
}
_ENDINGS = {0: "bold green", 1: "bold red"}


def board(survey: Survey) -> RenderableType:
    """The table, findings for the cells that differ, the conclusion last."""
    told = survey.geometry
    strategy = f"{told.strategy}, " if told.strategy else ""
    head = Text(
        f"{survey.url}: {survey.speaks}; {strategy}page {told.page_size}, interval "
        f"{told.interval}, state chunk {told.state_chunk}",
        style="dim",
    )
    ending = Text(survey.conclusion, _ENDINGS.get(survey.exit_code, "bold yellow"))
    return Group(head, _rows(survey), *_findings(survey), ending)


def _rows(survey: Survey) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("turn", "prompt", "finish", "deepest", "served", "same", "max |d logprob|"):
        table.add_column(name, justify="left" if name == "turn" else "right")
    table.add_column("verdict")
    table.add_column("why")
    for result in survey.results:
        table.add_row(Text(result.cell.name), *_numbers(result), _verdict(result), Text(result.why))
    return table


def _numbers(result: Result) -> list[str]:
    """Prompt, finish, deepest possible and served checkpoint, equal tokens, logprobs."""
    counts = [result.prompt, result.finish, result.deepest, result.cached]
    warm = result.warm
    same = f"{warm.same}/{warm.count}" if warm else ""
    diff = f"{warm.diff:.2g}" if warm and warm.diff is not None else ""
    return [*("" if count is None else str(count) for count in counts), same, diff]


def _verdict(result: Result) -> Text:
    return Text(result.verdict, _STYLES[result.verdict])


def _findings(survey: Survey) -> list[RenderableType]:
    """For each cell that differs, what the trace says; where it says nothing, that."""
    parts: list[RenderableType] = []
    for result in survey.results:
        if not survey.traced or result.verdict != "differs":
            continue
        findings = survey.findings.get(result.cell.index, ())
        lines = [Text(f"{each.title}\n{each.because}") for each in findings[:FINDINGS_MAX]]
        if len(findings) > FINDINGS_MAX:
            lines.append(Text(f"... and {len(findings) - FINDINGS_MAX} more; see --json."))
        nothing = Text("The trace has no finding that names this cell's requests.", "yellow")
        parts.append(
            Panel(
                Group(*lines) if lines else nothing,
                title=Text(result.cell.name),
                title_align="left",
                border_style=_STYLES["differs"] if lines else "yellow",
            )
        )
    return parts
