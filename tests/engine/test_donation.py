"""A verify in flight may write the very slot that a finished prefill donates.

The pool is small and full of cached checkpoints, so that spares can't be had; the prompts end one
token before a track depth, so that the first verify crosses it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import greedy, random_prompt

from slotscope.engine.engine import Engine

PROMPTS = [random_prompt(255, seed=at) for at in range(12)]
KNOBS = {"mamba_track_interval": 256, "max_mamba_cache_size": 12, "max_total_tokens": 16384}


def repeats(engine: Engine) -> tuple[int, list[int]]:
    """Ask each prompt twice: how many repeats differ, and what they found in the cache."""
    pairs = [engine.generate([p], greedy(16)) + engine.generate([p], greedy(16)) for p in PROMPTS]
    differ = sum(first.output != second.output for first, second in pairs)
    return differ, [second.usage.cached_tokens for _, second in pairs]


@pytest.mark.parametrize("drafter", ["NGRAM", "NEXTN"])
def test_without_the_guard_repeats_are_wrong(build: Callable[..., Engine], drafter: str) -> None:
    engine = build(
        **KNOBS, speculative_algorithm=drafter, without_patch=("prefill-donation-guard",)
    )
    differ, cached = repeats(engine)
    assert set(cached) == {192}
    assert differ >= 3


@pytest.mark.parametrize("drafter", ["NGRAM", "NEXTN"])
def test_with_the_guard_the_checkpoint_is_published_later(
    build: Callable[..., Engine], drafter: str
) -> None:
    engine = build(**KNOBS, speculative_algorithm=drafter)
    differ, cached = repeats(engine)
    assert differ == 0
    assert cached[-1] == 0, "nothing may be filed under 192: its slot held the state of 256 tokens"
    [longer] = engine.generate([[*PROMPTS[-1], *_answer(build, PROMPTS[-1])]], greedy(4))
    assert longer.usage.cached_tokens == 256


def test_a_roomy_pool_donates_at_once(build: Callable[..., Engine]) -> None:
    engine = build(**KNOBS | {"max_mamba_cache_size": 80}, speculative_algorithm="NEXTN")
    assert repeats(engine) == (0, [192] * len(PROMPTS))


def _answer(build: Callable[..., Engine], prompt: tuple[int, ...]) -> list[int]:
    return build(disable_radix_cache=True).generate([prompt], greedy(8))[0].output
