"""What comes back from the host is what left: tokens don't change, and the trace is clean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import DRAFTERS, Build, greedy, random_prompt

from slotscope.engine.config import STRATEGIES, ConfigError
from slotscope.engine.engine import Engine
from tests.end_to_end.traced import judged, tracing

PROMPTS = [random_prompt(length, seed=length) for length in (70, 130, 200)]
TOKENS = 20
TIERED: dict[str, Any] = {
    "enable_hierarchical_cache": True,
    "hicache_ratio": 4.0,
    "max_running_requests": 1,
    "max_total_tokens": 288,  # the longest prompt fills it, so that its KV drives out the others'
}
LEAST = {"no_buffer": 2, "extra_buffer": 4, "extra_buffer_lazy": 3}
CASES = [(strategy, drafter) for strategy in STRATEGIES for drafter in ("plain", "NEXTN")]
CASES += [("extra_buffer_lazy", "tree"), ("extra_buffer", "DFLASH")]


Asked = list[tuple[tuple[int, ...], list[int]]]
"""Prompts and their answers."""


@pytest.fixture(scope="module")
def turns(build: Build) -> tuple[Asked, Asked]:
    """First turns and second ones, as the plainest engine answers them: serial, nothing drafted,
    nothing reused."""
    engine = build(disable_overlap_schedule=True, disable_radix_cache=True)
    firsts = engine.generate(PROMPTS, greedy(TOKENS))
    seconds = engine.generate([[*each.tokens, 7] for each in firsts], greedy(TOKENS))
    first, second = ([(r.prompt, r.output) for r in turn] for turn in (firsts, seconds))
    return first, second


def ask(engine: Engine, turn: Asked) -> list[int]:
    """Ask one after the other; the tokens that were cached of each."""
    cached = []
    for prompt, answer in turn:
        [request] = engine.generate([prompt], greedy(TOKENS))
        assert request.output == answer
        cached.append(request.usage.cached_tokens)
    return cached


@pytest.mark.parametrize(("strategy", "drafter"), CASES)
def test_every_repeat_goes_through_the_host(
    build: Build,
    turns: tuple[Asked, Asked],
    tmp_path: Path,
    strategy: str,
    drafter: str,
) -> None:
    with tracing(tmp_path):
        engine = build(
            **TIERED,
            mamba_radix_cache_strategy=strategy,
            max_mamba_cache_size=LEAST[strategy],
            disable_overlap_schedule=strategy == "no_buffer",
            **DRAFTERS[drafter],
        )
        ask(engine, turns[0])
        for _ in range(2):
            for one in turns[1]:
                before = engine.stats().load_backs
                [cached] = ask(engine, [one])
                assert cached >= len(one[0]) // 64 * 64 - 64
                assert engine.stats().load_backs > before
    report = judged(tmp_path)
    assert [finding.because for finding in report.found] == []
    assert set(report.verdicts.values()) == {"clean"}
    # A state comes and goes in two components, each of which is told.
    assert report.ops["load_back"] == 2 * engine.stats().load_backs
    assert report.ops["offload"] == 2 * engine.stats().offloads
    assert engine.flush_cache()
    stats = engine.stats()
    assert (stats.host_slots_cached, stats.host_tokens_cached, stats.slots_cached) == (0, 0, 0)


@pytest.mark.parametrize(("page_size", "ranks"), [(1, 1), (16, 1), (16, 2)])
@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_a_host_too_small_for_all_forgets_and_stays_exact(
    build: Build, turns: tuple[Asked, Asked], ratio: float, page_size: int, ranks: int
) -> None:
    engine = build(
        **TIERED
        | {
            "hicache_ratio": ratio,
            "page_size": page_size,
            "dcp_size": ranks,
            "max_total_tokens": 288 // ranks,
            "max_mamba_cache_size": 4,
        }
    )
    for _ in range(3):
        ask(engine, turns[0])
    assert engine.stats().offloads


def test_without_the_tier_no_repeat_is_served_from_the_cache(
    build: Build, turns: tuple[Asked, Asked]
) -> None:
    engine = build(**TIERED | {"enable_hierarchical_cache": False}, max_mamba_cache_size=3)
    for _ in range(2):
        assert ask(engine, turns[0]) == [0, 0, 0]
    stats = engine.stats()
    assert (stats.offloads, stats.load_backs, stats.host_slots_free) == (0, 0, 0)


def test_each_stage_takes_its_own_part_along(
    build: Build, turns: tuple[Asked, Asked], tmp_path: Path
) -> None:
    with tracing(tmp_path):
        engine = build(
            **TIERED | {"max_running_requests": 2},
            pp_size=2,
            disable_overlap_schedule=True,
            max_mamba_cache_size=3,
            speculative_algorithm="NEXTN",
        )
        for _ in range(2):
            ask(engine, turns[0])
    report = judged(tmp_path)
    assert [finding.because for finding in report.found] == []
    assert report.ops["load_back"] == 4 * engine.stats().load_backs > 0


@pytest.mark.parametrize(
    ("knobs", "cure"),
    [
        ({"disable_radix_cache": True}, "Leave out one"),
        ({"hicache_ratio": 0.001}, "Set 0.0"),
        ({"hicache_ratio": 1e9}, "can be numbered"),
    ],
)
def test_a_tier_of_nothing_is_refused(build: Build, knobs: dict[str, Any], cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        build(enable_hierarchical_cache=True, **knobs)
