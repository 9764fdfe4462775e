"""docs/combinations.md, made of the outcomes of all cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from string import ascii_lowercase

from .cell import DRAFTERS, Cell
from .trial import Outcome

_OPENING = """\
# What goes together

Each cell below is an engine of that model, checkpoint strategy and drafter, with or without
overlap, in so many pipeline stages (PP), its keys and values on so many ranks of decode context
(dcp). The model is a small random one of its family, in float64; the control is Qwen3-Next with
attention in every layer.

- **=** every greedy token is the plain engine's, which is serial, drafts nothing and reuses
  nothing. The cell serves three prompts together, then prompts that continue its answers, then the
  first prompts again. Of the continuations at least one was resumed from a checkpoint that decode
  left, behind the first prompt's end; and of the drafts at least one was accepted.
- **≠** tokens differ; the number is the least margin between the two best logits of the plain
  model where an answer parts from it. A difference is a bug, whatever the margin.
- **0** nothing differs, but nothing was resumed, or no draft accepted, so nothing is proved.
- A letter: the engine refuses it at the start, in the words below.

`dcp` 1 has pages of 1 token, `dcp` 8 pages of 16, so a page of the tree is 128 tokens there; the
track interval is 64. All patches are on. `tree` is EAGLE with `--speculative-eagle-topk 2`; `plain`
drafts nothing. [Flags](flags.md), [drafters](speculation.md), [models](models.md).

This page is made by `python -m slotscope.engine.combinations > docs/combinations.md`, which tries
all cells (minutes) and exits with 1 where one is ≠ or 0. `tests/engine/combinations/` refuses all
that is refused here, and tries a cell of each model and drafter again.
"""


def text(outcomes: Mapping[Cell, Outcome]) -> str:
    """The whole page, of the outcomes of all cells in their order."""
    return "\n".join(_lines(outcomes))


def mark(outcome: Outcome) -> str:
    """What the table says of a cell that was served."""
    if outcome.margins:
        return f"≠ {min(outcome.margins):.1e}"
    return "0" if outcome.idle else "="


def _lines(outcomes: Mapping[Cell, Outcome]) -> Iterator[str]:
    yield _OPENING
    refused = {cell: outcome.refusal for cell, outcome in outcomes.items() if outcome.refusal}
    proved = sum(cell not in refused and mark(each) == "=" for cell, each in outcomes.items())
    yield f"{len(outcomes)} cells: {proved} are **=**, {len(refused)} are refused."
    yield from ("", "## What is refused", "", "| | in the engine's words |", "| --- | --- |")
    reasons: dict[str, str] = {}  # without the cell's own values -> as the first cell was told
    for cell, words in refused.items():
        reasons.setdefault(_reason(cell, words), words)
    letters = dict(zip(reasons, ascii_lowercase, strict=False))
    yield from (f"| {letters[reason]} | {words} |" for reason, words in reasons.items())
    marks = {
        cell: letters[_reason(cell, outcome.refusal)] if outcome.refusal else mark(outcome)
        for cell, outcome in outcomes.items()
    }
    for model, cells in groupby(marks, lambda cell: cell.model):
        yield from ("", f"## {model}", "")
        yield f"| strategy | overlap | PP | dcp | {' | '.join(DRAFTERS)} |"
        yield "|" + " --- |" * (4 + len(DRAFTERS))
        for row, across in groupby(cells, _row):
            yield f"| {' | '.join((*row, *(marks[cell] for cell in across)))} |"
    yield ""


def _reason(cell: Cell, words: str) -> str:
    """A refusal's words without what differs from cell to cell."""
    for value in (cell.model, f"--pp-size {cell.stages}", *_algorithm(cell)):
        words = words.replace(value, "")
    return words


def _algorithm(cell: Cell) -> tuple[str, ...]:
    name = cell.knobs().get("speculative_algorithm")
    return (name,) if name else ()


def _row(cell: Cell) -> tuple[str, ...]:
    overlap = "on" if cell.overlap else "off"
    return f"`{cell.strategy}`", overlap, str(cell.stages), str(cell.ranks)
