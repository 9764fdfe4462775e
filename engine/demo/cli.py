"""`slotscope demo`: from nothing to a finding, with the commands that a user has."""

from __future__ import annotations

import contextlib
import tempfile
import webbrowser
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .judge import Judgement, judge
from .load import Trial, run_load
from .prompts import prompts
from .servers import DemoError, checked, serving, showing
from .show import introduce, tell
from .story import DONATION, Story


def demo(
    headless: Annotated[
        bool,
        typer.Option(
            "--headless",
            help="Print the finding and exit: 0 only if the bug, and nothing else, was found.",
        ),
    ] = False,
    fixed: Annotated[
        bool,
        typer.Option("--fixed", help="Leave the patch on: the same load, and nothing is found."),
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Where to keep the trace; a new folder if not given.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the dashboard.")] = 8501,
) -> None:
    """Show a real bug, live: workload, wrong answer, finding, dashboard.

    Serves the small model inside over HTTP with one upstream fix switched off. Every reply is
    HTTP 200; some are wrong. The trace says which slot, which request, which forward, and why.

        slotscope demo               ends on the dashboard; Ctrl-C leaves it

        slotscope demo --headless    for scripts and CI

        slotscope demo --fixed       the twin: the patch is on
    """
    console = Console()
    where = trace or Path(tempfile.mkdtemp(prefix="slotscope-demo-")) / "trace"
    try:
        judgement = _play(console, DONATION, where, fixed=fixed)
        tell(console, DONATION, judgement, where, fixed=fixed)
        if not headless:
            _show(console, where, port)
    except (DemoError, OSError) as error:
        console.print(f"[red]slotscope demo: {error}[/]", highlight=False)
        raise typer.Exit(3) from None
    if not (judgement.spotless if fixed else judgement.as_told):
        raise typer.Exit(1)


def _play(console: Console, story: Story, trace: Path, *, fixed: bool) -> Judgement:
    flags = [*story.flags, *([] if fixed else ["--without-patch", story.patch])]
    introduce(console, story, flags, trace)
    trace.parent.mkdir(parents=True, exist_ok=True)
    with serving(trace, flags, trace.parent / "serve.log") as server:
        trials = _load(console, story, server)
    with console.status("judging the trace"):
        return judge(story, trials, checked(trace))


def _load(console: Console, story: Story, server: str) -> list[Trial]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(f"asking {server}", total=3 * story.prompts)
        asked = prompts(story.prompts, story.prompt_tokens)
        return run_load(
            server, asked, story.answer_tokens, story.clients, lambda: progress.advance(task)
        )


def _show(console: Console, trace: Path, port: int) -> None:
    with showing(trace, port, trace.parent / "dashboard.log") as address:
        console.print(f"\nThe dashboard is at [bold]{address}[/]. Ctrl-C ends the demo.")
        webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            Event().wait()
