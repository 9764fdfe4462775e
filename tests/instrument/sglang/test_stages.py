"""Pipeline stages of the real SGLang: each has slots of its own, and each must commit.

With speculation the last stage verifies and commits; the others learn what was accepted when it is
relayed to them. 0.5.21 relays it and commits nothing there, 0.5.22 and later do:
docs/found/sglang-0.5.21-stage-without-commit.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from real_sglang import python, stage_variables
from tiny_checkpoints import qwen3_5
from traced_sglang import (
    random_tokens,
    rest,
    traced_sglang,
    verdicts,
)

import slotscope
from slotscope.instrument import check

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
LENGTHS = (300, 130, 200, 63)


@dataclass
class Run:
    """Answers of four prompts: each alone, again from the cache, and all at once after a flush."""

    trace: Path
    cold: list[list[int]] = field(default_factory=list)
    warm: list[list[int]] = field(default_factory=list)
    together: list[list[int]] = field(default_factory=list)


def serve(
    trace: Path, stages: int, *, drafts: bool, plugin: bool = True, release: str | None = None
) -> Run:
    """Serve with so many stages; at once, the four requests are as many micro-batches."""
    chosen = {"release": release} if release else {}
    variables = stage_variables(stages, release or "") | (
        {"SGLANG_ENABLE_PP_SPEC": "1"} if drafts else {}
    )
    flags = STAGED | {"pp_size": stages} | (EAGLE if drafts else {})
    run = Run(trace)
    prompts = [random_tokens(length, seed=length) for length in LENGTHS]
    with traced_sglang(
        qwen3_5(), trace, plugin=plugin, variables=variables, **chosen, **flags
    ) as engine:
        for answers in (run.cold, run.warm):
            for prompt in prompts[:2]:
                answers.append(engine.ask([prompt], TOKENS)[0].tokens)
                rest()
        engine.flush()
        run.together = [answer.tokens for answer in engine.ask(prompts, TOKENS)]
        rest()
    return run


@pytest.fixture(scope="module")
def right() -> list[list[int]]:
    """Hugging Face's tokens for the four prompts."""
    checkpoint = qwen3_5()
    return [checkpoint.reference(random_tokens(n, seed=n), TOKENS) for n in LENGTHS]


@pytest.mark.parametrize("stages", [2])
@pytest.mark.skipif(not python(WITHOUT_COMMIT).exists(), reason="SGLANG=0.5.21 make test-sglang")
def test_a_stage_that_0_5_21_never_tells_to_commit_is_found(
    stages: int, right: list[list[int]], tmp_path: Path
) -> None:
    run = serve(tmp_path / "trace", stages, drafts=True, release=WITHOUT_COMMIT)
    with slotscope.open(run.trace) as trace:
        report = check.run(trace)
        said = verdicts(trace)
        ranks = trace.sql("FROM notes WHERE key = 'sglang.pp_rank'").to_pylist()
    assert said["D4"] == "found"
    assert {said[other] for other in ("D1", "D3", "D10")} == {"clean"}
    assert {finding.detector for finding in report.findings} == {"D4"}
    stage = {each["process"]: int(each["value"]) for each in ranks}
    # The last stage commits its own verifies; every other one, none.
    assert {stage[finding.process] for finding in report.findings} == set(range(stages - 1))
    assert "however, no commit moved slot" in report.findings[0].because
    # The state never moves behind the prompt, and the answers show it: from the third token on.
    for cold, warm, correct in zip(run.cold, run.warm, right, strict=False):
        assert cold[:2] == correct[:2]
        assert cold != correct
        assert warm == cold
