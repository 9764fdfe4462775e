"""Each upstream bug, brought back by switching its patch off, is found where it is, and alone.

What is right and wrong in truth comes from the engine's memory (`oracle`), not from events.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import DRAFTERS, Build, greedy, random_prompt

from slotscope.engine.engine import Engine
from tests.end_to_end import oracle
from tests.end_to_end.traced import Judged, judged, tracing

Workload = Callable[[Engine], None]


@pytest.fixture(scope="module")
def plain(build: Build) -> Engine:
    """Recomputes states: serial, nothing drafted, each state filed at the depth that it has."""
    return build(mamba_radix_cache_strategy="no_buffer", disable_overlap_schedule=True)


def each_prompt_twice(engine: Engine) -> None:
    """Prompts end one token before a track depth, so that the first verify crosses it."""
    for seed in range(5):
        prompt = random_prompt(255, seed)
        engine.generate([prompt], greedy(12))
        engine.generate([prompt], greedy(4))


def ends_around_a_track_depth(engine: Engine) -> None:
    """Answers pass 128 tokens and end at 191 to 194; each is then continued."""
    prompts = [random_prompt(126, seed) for seed in range(4)]
    ends = engine.generate(prompts, [greedy(tokens) for tokens in range(65, 69)])
    engine.generate([request.tokens for request in ends], greedy(4))


def two_long_answers(engine: Engine) -> None:
    """At once, over a few track depths."""
    engine.generate([random_prompt(100, seed=1), random_prompt(70, seed=2)], greedy(70))


def an_answer_past_a_page_and_a_half(engine: Engine) -> None:
    """It ends behind 192 tokens, a track depth in the middle of a page of 128."""
    [first] = engine.generate([random_prompt(100, seed=3)], greedy(100))
    engine.generate([first.tokens], greedy(4))


def prompts_past_a_page_and_a_half(engine: Engine) -> None:
    """192 tokens are three state chunks, and one and a half pages of 128."""
    for seed in range(3):
        prompt = random_prompt(220, seed)
        engine.generate([prompt], greedy(4))
        engine.generate([prompt], greedy(4))


def a_full_pool(engine: Engine) -> None:
    """Checkpoints fill the pool, then one request passes many track depths."""
    for seed in range(8):
        engine.generate([random_prompt(70, seed)], greedy(2))
    engine.generate([random_prompt(60, seed=99)], greedy(80))


NGRAM: dict[str, Any] = {"speculative_algorithm": "NGRAM"}
NEXTN: dict[str, Any] = {"speculative_algorithm": "NEXTN"}
TREE: dict[str, Any] = DRAFTERS["tree"]
EAGER: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer"}
DFLASH, DSPARK = EAGER | DRAFTERS["DFLASH"], EAGER | DRAFTERS["DSPARK"]
SCARCE: dict[str, Any] = {"mamba_track_interval": 256, "max_mamba_cache_size": 6}
SPARELESS: dict[str, Any] = NGRAM | {"fail_spare_slots": True}
PAGES: dict[str, Any] = {"page_size": 128}


def run(
    build: Build, directory: Path, off: tuple[str, ...], knobs: dict[str, Any], load: Workload
) -> tuple[Engine, Judged]:
    with tracing(directory):
        engine = build(**knobs, without_patch=off)
        load(engine)
    return engine, judged(directory)


@pytest.mark.parametrize(
    ("off", "knobs", "load", "detector"),
    [
        (("prefill-donation-guard",), SCARCE | NGRAM, each_prompt_twice, "D1"),
        (("prefill-donation-guard",), SCARCE | NEXTN, each_prompt_twice, "D1"),
        (("lazy-finish-guard",), SPARELESS, ends_around_a_track_depth, "D1"),
        (("shared-commit",), NGRAM, two_long_answers, "D4"),
        (("shared-commit",), DFLASH, two_long_answers, "D4"),
        (("shared-commit",), DSPARK, two_long_answers, "D4"),
        (("checkpoint-grid",), PAGES, prompts_past_a_page_and_a_half, "D1"),
        (("track-grid",), PAGES, an_answer_past_a_page_and_a_half, "D1"),
    ],
)
def test_the_bug_is_found_where_it_is_and_nothing_else(
    build: Build,
    plain: Engine,
    tmp_path: Path,
    off: tuple[str, ...],
    knobs: dict[str, Any],
    load: Workload,
    detector: str,
) -> None:
    engine, told = run(build, tmp_path / "trace", off, knobs, load)
    truth = oracle.checkpoints(engine, plain)
    wrong = {lease for lease, is_wrong in truth.items() if is_wrong}
    assert wrong, "the workload does not exercise the bug"
    assert {finding.detector for finding in told.report.findings} == {detector}
    assert "blind" not in told.verdicts.values()
    assert told.leases & truth.keys() <= wrong, "a right state is accused"
    unnamed = wrong - told.leases
    assert {told.givers[lease] for lease in unnamed} <= told.requests, "a wrong state goes unseen"


@pytest.mark.parametrize(
    ("off", "knobs", "load"),
    [
        ((), SCARCE | NEXTN, each_prompt_twice),
        ((), SPARELESS, ends_around_a_track_depth),
        ((), NGRAM, two_long_answers),
        (("shared-commit",), NEXTN, two_long_answers),
        (("shared-commit",), TREE, two_long_answers),
        ((), TREE, two_long_answers),
        ((), DFLASH, two_long_answers),
        ((), DSPARK, two_long_answers),
        (("insert-depth-guard",), PAGES, prompts_past_a_page_and_a_half),
        (("insert-depth-guard",), PAGES, an_answer_past_a_page_and_a_half),
    ],
)
def test_nothing_is_found_where_the_bug_does_no_harm(
    build: Build,
    plain: Engine,
    tmp_path: Path,
    off: tuple[str, ...],
    knobs: dict[str, Any],
    load: Workload,
) -> None:
    engine, told = run(build, tmp_path / "trace", off, knobs, load)
    assert not any(oracle.checkpoints(engine, plain).values())
    assert [finding.because for finding in told.found] == []
    assert set(told.verdicts.values()) == {"clean"}


@pytest.mark.parametrize("off", [(), ("no-evict-for-spare",)])
def test_a_checkpoint_that_goes_for_a_spare_is_a_loss_and_no_corruption(
    build: Build, plain: Engine, tmp_path: Path, off: tuple[str, ...]
) -> None:
    knobs = NGRAM | {"max_mamba_cache_size": 10}
    engine, told = run(build, tmp_path / "trace", off, knobs, a_full_pool)
    assert not any(oracle.checkpoints(engine, plain).values())
    assert {each.detector for each in told.found} == ({"P1"} if off else set())
    assert {each.severity for each in told.found} <= {"capacity"}
