"""A continuation from the cache gives the tokens of a flushed cache, in every configuration."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import DRAFTERS, greedy, random_prompt

from slotscope.engine.config import STRATEGIES, ConfigError
from slotscope.engine.engine import Engine

PROMPTS = [random_prompt(length, seed=length) for length in (70, 130, 200)]
ACCEPTED = [
    (strategy, drafter, overlap)
    for strategy in STRATEGIES
    for drafter in DRAFTERS
    for overlap in (0, 1)
    if not (strategy == "no_buffer" and overlap)
]


@pytest.fixture(scope="module")
def plain(build: Callable[..., Engine]) -> list[list[int]]:
    """The tokens of the plainest engine: serial, nothing drafted, nothing reused."""
    engine = build(disable_overlap_schedule=True, disable_radix_cache=True)
    return [request.output for request in engine.generate(PROMPTS, greedy(70))]


@pytest.mark.parametrize(("strategy", "drafter", "overlap"), ACCEPTED)
def test_reuse_is_exact(
    build: Callable[..., Engine],
    plain: list[list[int]],
    strategy: str,
    drafter: str,
    overlap: int,
) -> None:
    engine = build(
        mamba_radix_cache_strategy=strategy,
        disable_overlap_schedule=not overlap,
        **DRAFTERS[drafter],
    )
    first = engine.generate(PROMPTS, greedy(70))
    assert [request.output for request in first] == plain

    # A-B-A: B resumes behind what A has put out, and A resumes in its prompt once B has been there.
    longer = [r.tokens + list(p[:10]) for r, p in zip(first, PROMPTS, strict=True)]
    warm = engine.generate(longer, greedy(20))
    again = engine.generate(PROMPTS, greedy(70))
    assert [request.output for request in again] == plain
    assert all(
        request.usage.cached_tokens >= len(p) // 64 * 64
        for request, p in zip(warm, PROMPTS, strict=True)
    )

    assert engine.flush_cache()
    cold = engine.generate(longer, greedy(20))
    assert [request.usage.cached_tokens for request in cold] == [0, 0, 0]
    assert [request.output for request in warm] == [request.output for request in cold]


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_no_buffer_refuses_overlap(build: Callable[..., Engine], drafter: str) -> None:
    with pytest.raises(ConfigError, match="disable-overlap-schedule"):
        build(mamba_radix_cache_strategy="no_buffer", **DRAFTERS[drafter])


def test_no_buffer_refuses_pages(build: Callable[..., Engine]) -> None:
    with pytest.raises(ConfigError, match="page-size 1"):
        build(mamba_radix_cache_strategy="no_buffer", page_size=16, disable_overlap_schedule=True)


@pytest.mark.parametrize("page_size", [16, 64, 128])
@pytest.mark.parametrize("chunk", [64, 100, 512])
def test_reuse_is_exact_with_pages_and_chunks(
    build: Callable[..., Engine], plain: list[list[int]], page_size: int, chunk: int
) -> None:
    engine = build(page_size=page_size, chunked_prefill_size=chunk, speculative_algorithm="NGRAM")
    for _ in range(2):
        assert [r.output for r in engine.generate(PROMPTS, greedy(70))] == plain


def test_a_pool_that_must_evict_stays_exact(build: Callable[..., Engine]) -> None:
    prompts = [random_prompt(140, seed=100 + at) for at in range(6)]
    roomy = build(disable_radix_cache=True)
    expected = [roomy.generate([prompt], greedy(12))[0].output for prompt in prompts]
    tight = build(max_mamba_cache_size=9, max_total_tokens=1200, speculative_algorithm="NEXTN")
    for _ in range(2):
        assert [r.output for r in tight.generate(prompts, greedy(12))] == expected


def test_namespaces_share_nothing(build: Callable[..., Engine]) -> None:
    engine = build()
    [first] = engine.generate(PROMPTS[2:], greedy(4))
    [salted] = engine.generate(PROMPTS[2:], greedy(4), extra_key="other")
    [again] = engine.generate(PROMPTS[2:], greedy(4), extra_key="other")
    assert (first.usage.cached_tokens, salted.usage.cached_tokens) == (0, 0)
    assert again.usage.cached_tokens == 192
    assert first.output == salted.output == again.output


@pytest.mark.parametrize(
    ("strategy", "slots"), [("no_buffer", 2), ("extra_buffer", 4), ("extra_buffer_lazy", 3)]
)
def test_the_smallest_pool_has_room_for_who_resumes(
    build: Callable[..., Engine], strategy: str, slots: int
) -> None:
    knobs = {
        "mamba_radix_cache_strategy": strategy,
        "disable_overlap_schedule": strategy == "no_buffer",
    }
    with pytest.raises(ConfigError, match=f"Set at least {slots}"):
        build(**knobs, max_mamba_cache_size=slots - 1)
    build(**knobs, max_mamba_cache_size=slots - 1, disable_radix_cache=True)
    engine = build(**knobs, max_mamba_cache_size=slots)
    [first] = engine.generate([PROMPTS[1]], greedy(2))
    [longer] = engine.generate([first.tokens], greedy(2))
    assert longer.usage.cached_tokens >= 128
