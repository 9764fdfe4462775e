"""The table of docs/combinations.md holds: what it refuses is refused, what it serves is exact."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from slotscope.engine.combinations import page
from slotscope.engine.combinations.__main__ import main
from slotscope.engine.combinations.cell import CELLS, DRAFTERS, MODELS, Cell
from slotscope.engine.combinations.trial import Outcome, Trial

DOCS = Path(__file__).parents[3] / "docs" / "combinations.md"
HEADLESS = {
    (model, drafter)
    for model in ("kimi_linear", "granitemoehybrid")
    for drafter in ("NEXTN", "tree")
}
"""Families without an MTP head, and who drafts with one."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def refusals(trial: Trial) -> dict[Cell, str]:
    """Of every cell, "" where it is served: its engine was started, and served nothing."""
    return {cell: trial.refusal(cell) for cell in CELLS}


def served(cell: Cell) -> bool:
    """The rules that the page's four reasons tell, as a user would put them."""
    plainest = cell.strategy == "no_buffer"
    return not (
        (plainest and (cell.overlap or cell.ranks > 1))
        or (cell.stages > 1 and cell.overlap)
        or (cell.model, cell.drafter) in HEADLESS
    )


def sampled() -> list[Cell]:
    """A cell of each model and drafter, drawn with a seed from those that are served."""
    draw = random.Random(4)
    return [
        draw.choice([cell for cell in CELLS if (cell.model, cell.drafter) == pair and served(cell)])
        for pair in ((model, drafter) for model in MODELS for drafter in DRAFTERS)
        if pair not in HEADLESS
    ]


def test_exactly_what_cannot_go_together_is_refused(refusals: dict[Cell, str]) -> None:
    assert {cell for cell in CELLS if served(cell)} == {
        cell for cell, words in refusals.items() if not words
    }


def test_each_refusal_names_a_flag_that_cures_it(refusals: dict[Cell, str]) -> None:
    for words in set(refusals.values()) - {""}:
        assert any(cure in words for cure in ("Set --", "Choose --")), words


def test_the_docs_are_those_of_the_engine(refusals: dict[Cell, str]) -> None:
    """They claim that all that is not refused is exact, which other tests sample."""
    claimed = page.text({cell: Outcome(words) for cell, words in refusals.items()})
    assert DOCS.read_text() == claimed, (
        "docs/combinations.md is stale. Run: "
        "python -m slotscope.engine.combinations > docs/combinations.md"
    )


@pytest.mark.parametrize("cell", sampled(), ids=lambda cell: f"{cell.model}-{cell.drafter}")
def test_a_cell_gives_the_tokens_of_the_plain_engine(trial: Trial, cell: Cell) -> None:
    outcome = trial.run(cell)
    assert outcome == Outcome(), f"{cell} is {page.mark(outcome)} {outcome.refusal}"


def test_the_command_prints_the_page_of_the_cells_that_it_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = tuple(
        Cell("qwen3_next", "no_buffer", overlap, stages=1, ranks=1, drafter="plain")
        for overlap in (False, True)
    )
    assert main(cells) == 0
    printed = capsys.readouterr().out
    assert "2 cells: 1 are **=**, 1 are refused." in printed
    assert "| a | no_buffer donates the live state itself" in printed
    assert "| `no_buffer` | off | 1 | 1 | = |" in printed
    assert "| `no_buffer` | on | 1 | 1 | a |" in printed


def test_a_bug_shows_as_a_difference_with_its_margin(trial: Trial) -> None:
    """A verify that commits nothing: the same cell, one fix off."""
    cell = Cell("qwen3_next", "extra_buffer", overlap=True, stages=1, ranks=1, drafter="NGRAM")
    outcome = trial.run(cell, without_patch=("shared-commit",))
    assert outcome.margins
    assert min(outcome.margins) > 0
    assert page.mark(outcome).startswith("≠ ")


def test_a_cell_that_reuses_nothing_proves_nothing(trial: Trial) -> None:
    cell = Cell("qwen3_next", "extra_buffer", overlap=True, stages=1, ranks=1, drafter="plain")
    assert page.mark(trial.run(cell, disable_radix_cache=True)) == "0"
