"""Random schedules of arrivals, aborts, retractions and ends: nothing is left behind, nobody is
disturbed, no detector finds anything.

SLOTSCOPE_SCHEDULES says how many there are over all configurations; CI runs 200. Hypothesis draws
the same ones each time; a schedule that fails is printed, and can be given to `play` as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import engine_on, greedy, random_prompt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slotscope.engine.engine import Engine
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.schedule import Arrival, play
from tests.end_to_end.traced import Judged, judged, tracing

SCHEDULES = int(os.environ.get("SLOTSCOPE_SCHEDULES", "200"))
TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 4,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 1,
    "moe_intermediate_size": 8,
    "shared_expert_intermediate_size": 8,
    "num_experts": 2,
    "num_experts_per_tok": 1,
}
SHARED = random_prompt(64, seed=1)
PROMPTS = [
    *(random_prompt(length, seed=length) for length in (3, 50, 61, 100)),
    *(SHARED + random_prompt(length, seed=length) for length in (1, 63)),
]
TOKENS = 20  # so that decode crosses 64 and 128, where checkpoints are left
BUFFERED = ("extra_buffer_lazy", "extra_buffer")
POOL = {"max_total_tokens": 208, "max_mamba_cache_size": 9, "chunked_prefill_size": 64}
"""Each request fits alone, two long ones do not; slots are short too."""
CONFIGURATIONS = [
    *((strategy, drafter, 1, {}) for strategy in BUFFERED for drafter in ("", "NGRAM", "NEXTN")),
    ("extra_buffer_lazy", "NGRAM", 0, {"pp_size": 2}),
    ("extra_buffer_lazy", "", 1, {"enable_mixed_chunk": True}),
    ("extra_buffer_lazy", "NGRAM", 1, {"dcp_size": 4, "page_size": 2, "max_total_tokens": 52}),
    ("no_buffer", "", 0, {"enable_mixed_chunk": True}),
    ("no_buffer", "NEXTN", 0, {}),
    ("extra_buffer_lazy", "NGRAM", 1, {"enable_hierarchical_cache": True, "hicache_ratio": 0.5}),
    ("extra_buffer", "", 1, {"enable_linear_replayssm": True, "linear_replayssm_cache_len": 5}),
]

Outputs = dict[tuple[int, ...], list[int]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smallest model that has an attention and a recurrent layer."""
    return make_checkpoint(tmp_path_factory.mktemp("model") / "tiny", **TINY)


@pytest.fixture(scope="module")
def plain(tiny: Path) -> Outputs:
    """What each prompt is answered where nobody disturbs anybody."""
    engine = engine_on(tiny, disable_overlap_schedule=True, disable_radix_cache=True)
    return {p: engine.generate([p], greedy(TOKENS))[0].output for p in PROMPTS}


@st.composite
def schedules(draw: st.DrawFn) -> list[Arrival]:
    """Up to five requests within twenty turns; some are aborted, some must give way."""
    count = draw(st.integers(3, 5))
    arrivals = []
    for at in range(count):
        turn = draw(st.integers(0, 20))
        leaves = draw(st.sampled_from(["abort_turn", "retract_turn", None]))
        later = turn + draw(st.integers(0, 15))
        arrivals.append(
            Arrival(
                turn,
                f"q{at}",
                draw(st.sampled_from(PROMPTS)),
                greedy(draw(st.integers(1, TOKENS))),
                **{leaves: later} if leaves else {},
            )
        )
    return arrivals


def check_one(engine: Engine, arrivals: list[Arrival], plain: Outputs | None) -> None:
    """Play one schedule on an empty engine, and compare its answers with `plain`, if it is given.
    An idle engine checks its own invariants."""
    for arrival, request in zip(arrivals, play(engine, arrivals), strict=True):
        if plain is None:
            continue
        whole = plain[arrival.prompt][: arrival.sampling.max_new_tokens]
        if request.finish_reason == "abort":
            assert arrival.abort_turn is not None
            assert request.output == whole[: len(request.output)]
        else:
            assert (request.finish_reason, request.output) == ("length", whole)
    assert engine.flush_cache()
    stats = engine.stats()
    assert (stats.running, stats.queued, stats.slots_free) == (0, 0, engine._cache.slots.size)


def play_many(build: Callable[[], Engine], count: int, plain: Outputs | None) -> int:
    """Play `count` random schedules, and say how many retractions there were."""
    engine = build()

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(schedules())
    def each(arrivals: list[Arrival]) -> None:
        nonlocal engine
        try:
            check_one(engine, arrivals, plain)
        except BaseException:
            engine = build()  # What is left of the old one says nothing about the next schedule.
            raise

    each()
    return engine.stats().retractions


def run(tiny: Path, trace: Path, plain: Outputs, count: int, **knobs: object) -> Judged:
    """Play random schedules on one engine, and judge its trace."""
    with tracing(trace):
        retractions = play_many(lambda: engine_on(tiny, **POOL | knobs), count, plain)
    report = judged(trace)
    assert report.ops.get("retract", 0) == retractions
    return report


@pytest.mark.parametrize(("strategy", "drafter", "overlap", "more"), CONFIGURATIONS)
def test_no_schedule_leaves_anything_behind(
    tiny: Path,
    tmp_path: Path,
    plain: Outputs,
    strategy: str,
    drafter: str,
    overlap: int,
    more: dict[str, object],
) -> None:
    report = run(
        tiny,
        tmp_path,
        plain,
        -(-SCHEDULES // len(CONFIGURATIONS)),
        mamba_radix_cache_strategy=strategy,
        speculative_algorithm=drafter,
        disable_overlap_schedule=not overlap,
        **more,
    )
    assert [finding.because for finding in report.found] == []
    assert set(report.verdicts.values()) == {"clean"}
    assert report.ops["retract"] > 0
    assert report.ops["request.end aborted"] > 0


def test_a_bug_shows_in_the_same_schedules(tiny: Path, tmp_path: Path) -> None:
    """The twin: with a fix off wrong checkpoints are filed, whatever the answers are."""
    broken = {"without_patch": ("prefill-donation-guard",), "fail_spare_slots": True}
    knobs = {"speculative_algorithm": "NEXTN", "chunked_prefill_size": 128}
    with tracing(tmp_path):
        play_many(lambda: engine_on(tiny, **POOL | knobs | broken), 20, None)
    assert {finding.detector for finding in judged(tmp_path).report.findings} == {"D1"}
