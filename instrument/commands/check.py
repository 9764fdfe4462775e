"""`slotscope check`: the verdicts on a trace."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .options import TraceArgument


class Form(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"


def check(
    trace: TraceArgument,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Print JUnit XML, for CI.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, to paste into an issue.")
    ] = False,
) -> None:
    """Judge a trace: what contradicts itself, what is clean, what could not be seen.

    Exits 0 if all is clean, 1 if something was found, 2 if nothing was found but a detector was
    blind (a dead hook, lost events), 3 if there is no readable trace.

        slotscope check traces/today

        slotscope check traces/today --junit > slotscope.xml
    """
    from rich.console import Console

    import slotscope
    from slotscope.instrument import check as judge

    chosen = [form for form, on in zip(_FORMS, (json, junit, markdown), strict=True) if on]
    if len(chosen) > 1:
        raise typer.BadParameter(f"--{chosen[0]} and --{chosen[1]} exclude each other.")
    with slotscope.open(trace, time_limit_s=0) as opened:
        report = judge.run(opened)
    form = chosen[0] if chosen else Form.TEXT
    if form is Form.TEXT:
        Console().print(report.rich())
    else:
        write = {
            Form.JSON: report.to_json,
            Form.JUNIT: report.junit,
            Form.MARKDOWN: report.markdown,
        }
        typer.echo(write[form]())
    raise typer.Exit(report.exit_code)


_FORMS = (Form.JSON, Form.JUNIT, Form.MARKDOWN)
