"""Each fix of the stages switched off: its symptom, and the finding that names who is wrong.

With two stages, what is paired wrongly is paired rightly by accident; only four show it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import Build

from slotscope.engine.pipeline.error import PipelineError
from tests.end_to_end.traced import Judged, judged, tracing
from tests.engine.pipeline.arrivals import Arrival, mixed, serve

Answers = list[tuple[list[int], int, int]]


def arrivals() -> list[Arrival]:
    """Enough to recompose four micro-batches."""
    return mixed(9, tokens_max=16, seed=2)


@pytest.fixture(scope="module")
def alone(staged: Build) -> Answers:
    """What one stage answers."""
    return serve(staged(speculative_algorithm="NGRAM"), arrivals())


def run(staged: Build, directory: Path, stages: int, *off: str) -> tuple[Answers, Judged]:
    with tracing(directory):
        engine = staged(speculative_algorithm="NGRAM", pp_size=stages, without_patch=off)
        answers = serve(engine, arrivals())
    return answers, judged(directory)


@pytest.mark.parametrize("stages", [2, 4])
def test_with_all_fixes_nothing_is_found(
    staged: Build, tmp_path: Path, alone: Answers, stages: int
) -> None:
    answers, told = run(staged, tmp_path / "trace", stages)
    assert answers == alone
    assert set(told.verdicts.values()) == {"clean"}


def test_a_stage_that_commits_nothing_is_silent_and_found(
    staged: Build, tmp_path: Path, alone: Answers
) -> None:
    answers, told = run(staged, tmp_path / "trace", 2, "pp-stage-commit")
    assert answers != alone
    assert [len(output) for output, *_ in answers] == [len(output) for output, *_ in alone]
    causes = told.report.findings
    assert {(cause.detector, cause.pool) for cause in causes} == {("D4", 0)}
    assert "of micro-batch 1, on stage 0, verify request a1" in causes[0].because


def test_two_stages_hide_a_result_that_is_paired_wrongly(
    staged: Build, tmp_path: Path, alone: Answers
) -> None:
    answers, told = run(staged, tmp_path / "trace", 2, "pp-pair-by-microbatch", "pp-stable-rows")
    assert answers == alone
    assert told.found == []


def test_four_stages_crash_on_it(staged: Build, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="requests, but would commit it to the"):
        run(staged, tmp_path / "trace", 4, "pp-pair-by-microbatch")
    told = judged(tmp_path / "trace")
    assert told.ops["scatter failed"] >= 1
    (first, *_) = (each.because for each in told.report.findings if each.detector == "D5")
    assert "Let forward 6 be one of micro-batch 1" in first
    assert "on stage 1 the commit of forward 6" in first
    assert "applies the result of micro-batch 0 to request a1" in first


def test_four_stages_overwrite_scratch_that_goes_by_place(
    staged: Build, tmp_path: Path, alone: Answers
) -> None:
    answers, told = run(staged, tmp_path / "trace", 4, "pp-stable-rows")
    assert answers != alone
    found = [finding for finding in told.found if "in scratch row" in finding.because]
    # The stage next to the last one gets each result before it computes another verify.
    assert {finding.pool for finding in found} == {0, 1}
    first = min(found, key=lambda finding: finding.position).because
    assert "of micro-batch 0, on stage 0, leave the states of request a" in first
    assert "of micro-batch 1 left those of request a" in first
