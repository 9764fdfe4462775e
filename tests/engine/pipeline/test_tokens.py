"""As many stages as one likes give the same tokens, and drafts are accepted as often."""

from __future__ import annotations

from typing import Any

import pytest
from asking import Build, greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.models.error import ModelError
from tests.engine.pipeline.arrivals import mixed, serve

STRATEGIES = ("no_buffer", "extra_buffer", "extra_buffer_lazy")


@pytest.mark.parametrize("drafter", ["", "NGRAM", "NEXTN"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stages_change_nothing(staged: Build, drafter: str, strategy: str) -> None:
    knobs: dict[str, Any] = {
        "speculative_algorithm": drafter,
        "mamba_radix_cache_strategy": strategy,
    }
    alone = serve(staged(**knobs), mixed(10))
    assert serve(staged(pp_size=2, **knobs), mixed(10)) == alone
    assert serve(staged(pp_size=4, **knobs), mixed(10)) == alone


@pytest.mark.parametrize("drafter", ["NGRAM", "NEXTN"])
def test_sixty_four_requests_that_recompose_micro_batches(staged: Build, drafter: str) -> None:
    arrivals = mixed(64, tokens_max=10)
    alone = serve(staged(speculative_algorithm=drafter), arrivals)
    assert sum(accepted > verifies for _, verifies, accepted in alone) > 10, "drafts are accepted"
    for stages in (2, 4):
        engine = staged(speculative_algorithm=drafter, pp_size=stages)
        assert serve(engine, mixed(64, tokens_max=10)) == alone
        assert engine.stats().tokens_cached > 0


@pytest.mark.parametrize("stages", [2, 4])
def test_every_stage_moves_the_keys_of_a_trees_path(staged: Build, stages: int) -> None:
    tree: dict[str, Any] = {
        "speculative_algorithm": "EAGLE",
        "speculative_eagle_topk": 2,
        "speculative_num_draft_tokens": 7,
    }
    alone = serve(staged(**tree), mixed(8))
    assert sum(accepted > verifies for _, verifies, accepted in alone) > 2, "drafts are accepted"
    assert serve(staged(pp_size=stages, **tree), mixed(8)) == alone


def test_as_many_micro_batches_as_stages_are_in_flight(staged: Build) -> None:
    engine = staged(pp_size=4, max_running_requests=8)
    for _, request in mixed(8, tokens_max=30):
        engine.submit(request)
    engine.turn()
    seen = set()
    while not engine.scheduler.idle:
        seen.add(len({running.micro_batch for running in engine.scheduler.decode.running}))
        engine.turn()
    assert max(seen) == 4


def test_a_long_prompt_stays_in_its_micro_batch(staged: Build) -> None:
    prompts = [random_prompt(300, seed) for seed in range(3)]
    alone = staged(chunked_prefill_size=64).generate(prompts, greedy(8))
    cut = staged(chunked_prefill_size=64, pp_size=3).generate(prompts, greedy(8))
    assert [r.output for r in cut] == [r.output for r in alone]


def test_who_gives_way_is_of_the_micro_batch_that_comes_next(staged: Build) -> None:
    """Others are in flight: later stages have yet to write their slots."""
    prompts = [random_prompt(40, seed) for seed in range(5)]
    alone = staged().generate(prompts, greedy(110))
    short = staged(pp_size=4, max_total_tokens=520, speculative_algorithm="NGRAM")
    answers = short.generate(prompts, greedy(110))
    assert short.stats().retractions > 0
    assert [r.output for r in answers] == [r.output for r in alone]


def test_an_abort_in_flight_waits_until_the_flight_has_landed(staged: Build) -> None:
    engine = staged(pp_size=4, speculative_algorithm="NGRAM", max_running_requests=4)
    alone = serve(staged(speculative_algorithm="NGRAM"), mixed(12))
    arrivals = mixed(12)
    for _, request in arrivals:
        engine.submit(request)
    for turn in range(40):
        engine.turn()
        if turn % 3 == 2:
            engine.abort(f"a{turn // 3}")
    while not engine.scheduler.idle:
        engine.turn()
    for (_, request), (output, *_) in zip(arrivals, alone, strict=True):
        assert request.output == output[: len(request.output)]
        assert request.finish_reason == "abort" or request.output == output
    assert {r.finish_reason for _, r in arrivals} == {"abort", "length"}


def test_what_stages_exclude_is_refused(staged: Build) -> None:
    with pytest.raises(ConfigError, match=r"--pp-size 2 keeps.*--disable-overlap-schedule"):
        staged(pp_size=2, disable_overlap_schedule=False)
    for other in ({"tp_size": 2}, {"dp_size": 2}, {"disaggregation_mode": "prefill"}):
        with pytest.raises(ConfigError, match="Use SGLang for that"):
            staged(**other)
    with pytest.raises(ModelError, match=r"8 layers, too few for 9.*--pp-size to 8"):
        staged(pp_size=9)
