"""Pipeline stages of the real SGLang: each has slots of its own, and each must commit.

With speculation the last stage verifies and commits; the others learn what was accepted when it is
relayed to them. 0.5.21 relays it and commits nothing there, 0.5.22 and later do, but into the track
slots of the prefill: docs/found/sglang-0.5.21-stage-without-commit.md and
docs/found/sglang-0.5.22-track-into-given-slot.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from real_sglang import NEWEST, python, stage_variables
from tiny_checkpoints import qwen3_5
from traced_sglang import (
    assert_clean,
    assert_pool_is_sglang_s,
    random_tokens,
    rest,
    traced_sglang,
    verdicts,
)

import slotscope
from slotscope.instrument import check
from slotscope.instrument.trace import Trace

pytestmark = pytest.mark.sglang

WITHOUT_COMMIT = "0.5.21"
STAGED: dict[str, Any] = {
    "mamba_radix_cache_strategy": "extra_buffer",
    "mamba_track_interval": 64,
    "page_size": 64,
    "disable_overlap_schedule": True,  # stages and overlap exclude each other
}
EAGLE = {
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 2,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 3,
}
TOKENS = 24
LENGTHS = (300, 130, 200, 63)  # of prompts; the answers of two of them cross a boundary
SHORT_OF = (200, 130, 257, 70)  # none does


@dataclass
class Run:
    """Answers of four prompts: each alone, again from the cache, and all at once after a flush."""

    trace: Path
    cold: list[list[int]] = field(default_factory=list)
    warm: list[list[int]] = field(default_factory=list)
    together: list[list[int]] = field(default_factory=list)


def serve(
    trace: Path,
    stages: int,
    *,
    drafts: bool,
    lengths: tuple[int, ...] = LENGTHS,
    release: str = NEWEST,
) -> Run:
    """Serve with so many stages; at once, the four requests are as many micro-batches."""
    variables = stage_variables(stages, release)
    if drafts:
        variables["SGLANG_ENABLE_PP_SPEC"] = "1"
    flags = STAGED | {"pp_size": stages} | (EAGLE if drafts else {})
    run = Run(trace)
    prompts = [random_tokens(length, seed=length) for length in lengths]
    with traced_sglang(qwen3_5(), trace, release=release, variables=variables, **flags) as engine:
        for answers in (run.cold, run.warm):
            for prompt in prompts[:2]:
                answers.append(engine.ask([prompt], TOKENS)[0].tokens)
                rest()
        engine.flush()
        run.together = [answer.tokens for answer in engine.ask(prompts, TOKENS)]
        rest()
    return run


def right(lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    """Hugging Face's tokens for the prompts."""
    checkpoint = qwen3_5()
    return [checkpoint.reference(random_tokens(n, seed=n), TOKENS) for n in lengths]


def stages_of(trace: Trace) -> dict[int, int]:
    """The stage of each process."""
    ranks = trace.sql("FROM notes WHERE key = 'sglang.pp_rank'").to_pylist()
    return {each["process"]: int(each["value"]) for each in ranks}


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.skipif(not python(WITHOUT_COMMIT).exists(), reason="SGLANG=0.5.21 make test-sglang")
def test_a_stage_that_0_5_21_never_tells_to_commit_is_found(stages: int, tmp_path: Path) -> None:
    run = serve(tmp_path / "trace", stages, drafts=True, release=WITHOUT_COMMIT)
    with slotscope.open(run.trace) as trace:
        report = check.run(trace)
        said = verdicts(trace)
        stage = stages_of(trace)
    assert said["D4"] == "found"
    assert {said[other] for other in ("D1", "D3", "D10")} == {"clean"}
    assert {finding.detector for finding in report.findings} == {"D4"}
    # The last stage commits its own verifies; every other one, none.
    assert {stage[finding.process] for finding in report.findings} == set(range(stages - 1))
    assert "however, no commit moved slot" in report.findings[0].because
    # The state never moves behind the prompt, and the answers show it: from the third token on.
    for cold, warm, correct in zip(run.cold, run.warm, right(), strict=False):
        assert cold[:2] == correct[:2]
        assert cold != correct
        assert warm == cold


@pytest.mark.parametrize(
    ("drafts", "lengths"), [(False, LENGTHS), (True, SHORT_OF)], ids=["plain", "eagle"]
)
def test_four_stages_are_seen_whole_and_contradict_nothing(
    drafts: bool, lengths: tuple[int, ...], tmp_path: Path
) -> None:
    run = serve(tmp_path / "trace", 4, drafts=drafts, lengths=lengths)
    with slotscope.open(run.trace) as trace:
        assert_clean(trace)
        assert_pool_is_sglang_s(trace)
        launches = trace.sql("FROM events WHERE op = 'forward.launch'").to_pylist()
        assert {launch["process"] for launch in launches} == set(stages_of(trace))
    assert {launch["micro_batch"] for launch in launches} == {0, 1, 2, 3}
    expected = right(lengths)
    assert (run.cold, run.warm, run.together) == (expected[:2], expected[:2], expected)


def test_a_track_into_a_slot_that_the_tree_has_is_found(tmp_path: Path) -> None:
    run = serve(tmp_path / "trace", 2, drafts=True)
    with slotscope.open(run.trace) as trace:
        report = check.run(trace)
        stage = stages_of(trace)
    said = {verdict.detector: verdict.verdict for verdict in report.verdicts}
    assert {said[each] for each in ("D1", "D2", "D3", "D6")} == {"found"}
    assert {said[each] for each in ("D4", "D5", "D10")} == {"clean"}
    assert {stage[finding.process] for finding in report.findings} == {0}
    expected = right()
    assert (run.cold, run.together) == (expected[:2], expected)
    # The first prompt's answer crosses a boundary, the second one's does not.
    assert run.warm[0][0] == expected[0][0]
    assert run.warm[0] != expected[0]
    assert run.warm[1] == expected[1]
