"""On every family of models a sound engine is not accused, and a bug is found."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asking import Build, engine_on, greedy, random_prompt

from slotscope.engine.models.testing import FAMILIES, make_checkpoint
from tests.end_to_end.load import make_load, run_load
from tests.end_to_end.traced import judged, tracing

KNOBS: dict[str, Any] = {
    "mamba_radix_cache_strategy": "extra_buffer_lazy",
    "speculative_algorithm": "NGRAM",
    "chunked_prefill_size": 100,
    "max_total_tokens": 1100,
    "max_mamba_cache_size": 9,
}


@pytest.fixture(scope="module", params=sorted(FAMILIES.keys() - {"qwen3_next"}))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = make_checkpoint(tmp_path_factory.mktemp("model"), family=request.param)
    return partial(engine_on, folder)


def test_nothing_is_found_where_nothing_is_wrong(family: Build, tmp_path: Path) -> None:
    load = make_load(2)
    plain = family(disable_overlap_schedule=True, disable_radix_cache=True)
    right = plain.generate([each.prompt for each in load], [each.sampling for each in load])
    with tracing(tmp_path / "trace"):
        requests = run_load(family(**KNOBS), load)
    for request, answer in zip(requests, right, strict=True):
        length = len(request.output) if request.finish_reason == "abort" else None
        assert request.output == answer.output[:length], request.request_id
    told = judged(tmp_path / "trace")
    assert [finding.because for finding in told.found] == []
    assert set(told.verdicts.values()) == {"clean"}
    assert {"restore", "evict", "donate"} <= told.ops.keys()


def test_a_verify_that_is_never_committed_is_found(family: Build, tmp_path: Path) -> None:
    """The twin: by the answers, which are others, and by D4."""
    prompts = [random_prompt(100, seed=1), random_prompt(70, seed=2)]
    plain = family(disable_overlap_schedule=True, disable_radix_cache=True)
    right = [request.output for request in plain.generate(prompts, greedy(40))]
    with tracing(tmp_path / "trace"):
        engine = family(
            speculative_algorithm="NGRAM",
            mamba_radix_cache_strategy="extra_buffer",
            without_patch=("shared-commit",),
        )
        wrong = [request.output for request in engine.generate(prompts, greedy(40))]
    assert wrong != right
    assert judged(tmp_path / "trace").verdicts["D4"] == "found"
