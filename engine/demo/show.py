"""What the demo prints."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .judge import Judgement
from .load import Trial
from .story import Story

SHOWN_MAX = 3
"""Wrong answers that are printed in full."""


def introduce(console: Console, story: Story, flags: list[str], trace: Path) -> None:
    """What is about to happen."""
    console.print(Panel(story.what, title=story.title, title_align="left", padding=(1, 2)))
    command = ["slotscope", "serve", "--model-path", "bundled", "--trace", str(trace), *flags]
    console.print(Text(" ".join(command), style="dim"))


def tell(console: Console, story: Story, judgement: Judgement, trace: Path, *, fixed: bool) -> None:
    """What came of it."""
    status = "every one HTTP 200" if not judgement.errors else f"{judgement.errors} not HTTP 200"
    console.print(
        f"\n{judgement.replies} replies, {status}. "
        f"{judgement.reused} of {story.prompts} repeats were served from the cache; "
        f"[bold]{len(judgement.wrong)}[/] of them differ from the same prompt on an empty cache."
    )
    if judgement.wrong:
        console.print(_answers(judgement.wrong))
    if judgement.findings:
        _finding(console, judgement)
    console.print(_closing(story, judgement, fixed=fixed))
    console.print(Text(f"slotscope check {trace}", style="dim"))


def _answers(wrong: tuple[Trial, ...]) -> Table:
    table = Table(title=f"{min(len(wrong), SHOWN_MAX)} of the wrong answers", title_justify="left")
    for name in ("the prompt ends", "empty cache", "from the cache"):
        table.add_column(name, overflow="fold")
    for trial in wrong[:SHOWN_MAX]:
        control, again = trial.control.text, trial.again.text
        same = next(
            (at for at, (a, b) in enumerate(zip(control, again, strict=False)) if a != b),
            min(len(control), len(again)),
        )
        marked = Text(again)
        marked.stylize("bold red", same)
        table.add_row(Text("…" + trial.prompt[-40:]), Text(control), marked)
    return table


def _finding(console: Console, judgement: Judgement) -> None:
    first = judgement.findings[0]
    title = f"{first['detector']} {first['name']}: slot {first['slot']}, {first['request_id']}"
    text = Text(first["because"])
    if first["also"]:
        text.append(f"\n\n{len(first['also'])} further contradictions follow from it.", "dim")
    console.print(Panel(text, title=title, title_align="left", border_style="red", padding=(1, 2)))
    rest = len(judgement.findings) - 1
    if rest:
        console.print(f"… and {rest} more of the same kind.")


def _closing(story: Story, judgement: Judgement, *, fixed: bool) -> Text:
    if fixed:
        if judgement.spotless:
            return Text(f"With {story.patch} on: nothing wrong, nothing found.", "bold green")
        return Text("With the patch on nothing should have been found. It was.", "bold red")
    if judgement.as_told:
        return Text("Each wrong answer is explained, and nothing else was found.", "bold green")
    return Text(
        f"This is not as it should be: {len(judgement.wrong)} wrong answers, "
        f"{len(judgement.findings)} findings, {len(judgement.unexplained)} answers unexplained, "
        f"{len(judgement.foreign)} findings of another kind, blind: "
        f"{', '.join(judgement.blind) or 'none'}.",
        "bold red",
    )
