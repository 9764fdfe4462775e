"""Reuse is exact on every family of models: what it needs of slots and states is all generic."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from asking import Build, engine_on, greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.models.testing import FAMILIES, make_checkpoint

PROMPTS = [random_prompt(length, seed=length) for length in (70, 130)]
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "lazy": {
        "mamba_radix_cache_strategy": "extra_buffer_lazy",
        "speculative_algorithm": "NGRAM",
    },
    "two stages": {
        "pp_size": 2,
        "disable_overlap_schedule": True,
        "speculative_algorithm": "NGRAM",
    },
    "block draft": {"speculative_algorithm": "DSPARK"},
}
OTHERS = sorted(FAMILIES.keys() - {"qwen3_next"})
"""Qwen3-Next serves all other tests of the engine."""


@pytest.fixture(scope="module", params=OTHERS)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = make_checkpoint(tmp_path_factory.mktemp("model"), family=request.param, draft=True)
    return partial(engine_on, folder)


@pytest.fixture(scope="module")
def expected(family: Build) -> list[list[int]]:
    """The tokens of the plainest engine: serial, nothing drafted, nothing reused."""
    plain = family(disable_overlap_schedule=True, disable_radix_cache=True)
    return [request.output for request in plain.generate(PROMPTS, greedy(70))]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_reuse_is_exact(family: Build, expected: list[list[int]], name: str) -> None:
    """A-B-A: B resumes behind what A has put out, and A resumes in its prompt after that."""
    engine = family(**CONFIGURATIONS[name])
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


def test_a_folder_without_a_head_has_nothing_to_draft_with(family: Build) -> None:
    with pytest.raises(ConfigError, match="no multi-token prediction head"):
        family(speculative_algorithm="NEXTN")
