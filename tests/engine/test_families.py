"""Reuse is exact on every family of models: what it needs of slots and states is all generic."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from asking import Build, engine_on, greedy, random_prompt

from slotscope.engine.models.testing import FAMILIES, make_checkpoint

PROMPTS = [random_prompt(length, seed=length) for length in (70, 130)]
OTHERS = sorted(FAMILIES.keys() - {"qwen3_next"})
"""Qwen3-Next serves all other tests of the engine."""


@pytest.fixture(scope="module", params=OTHERS)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder: Path = make_checkpoint(tmp_path_factory.mktemp("model"), family=request.param)
    return partial(engine_on, folder)


def test_reuse_is_exact(family: Build) -> None:
    """A-B-A: B resumes behind what A has put out, and A resumes in its prompt after that."""
    plain = family(disable_overlap_schedule=True, disable_radix_cache=True)
    expected = [request.output for request in plain.generate(PROMPTS, greedy(70))]
    engine = family(
        mamba_radix_cache_strategy="extra_buffer_lazy",
        speculative_algorithm="NGRAM",
        disable_overlap_schedule=False,
    )
    first = engine.generate(PROMPTS, greedy(70))
    assert [request.output for request in first] == expected

    longer = [r.tokens + list(p[:10]) for r, p in zip(first, PROMPTS, strict=True)]
    warm = engine.generate(longer, greedy(20))
    again = engine.generate(PROMPTS, greedy(70))
    assert [request.output for request in again] == expected
    assert all(
        request.usage.cached_tokens >= len(p) // 64 * 64
        for request, p in zip(warm, PROMPTS, strict=True)
    )

    assert engine.flush_cache()
    cold = engine.generate(longer, greedy(20))
    assert [request.usage.cached_tokens for request in cold] == [0, 0]
    assert [request.output for request in warm] == [request.output for request in cold]


def test_a_verify_that_is_never_committed_shows(family: Build) -> None:
    """The twin: with the bug on, the same requests get other tokens, so the test above can fail."""
    knobs = {"disable_overlap_schedule": True, "disable_radix_cache": True}
    expected = [r.output for r in family(**knobs).generate(PROMPTS, greedy(70))]
    broken = family(**knobs, speculative_algorithm="NGRAM", without_patch=("shared-commit",))
    assert [r.output for r in broken.generate(PROMPTS, greedy(70))] != expected
