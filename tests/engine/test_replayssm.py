"""ReplaySSM: decode that keeps inputs beside the state answers as decode that moves the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import Build, greedy, random_prompt
from hypothesis import given
from hypothesis import strategies as st

import slotscope
from slotscope.engine.cadence import Cadence
from slotscope.engine.config import STRATEGIES, ConfigError
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.schedule import Arrival, play
from tests.end_to_end.traced import judged, tracing

PROMPTS = [random_prompt(length, seed=length) for length in (70, 130, 200)]
TOKENS = 23
RING: dict[str, Any] = {"enable_linear_replayssm": True, "linear_replayssm_cache_len": 6}
Turns = list[list[tuple[tuple[int, ...], list[int]]]]


@pytest.fixture(scope="module")
def turns(build: Build) -> Turns:
    """Prompts and answers of the plainest engine, and of a second turn behind them."""
    engine = build(disable_overlap_schedule=True, disable_radix_cache=True)
    firsts = engine.generate(PROMPTS, greedy(TOKENS))
    seconds = engine.generate([[*each.tokens, 7] for each in firsts], greedy(TOKENS))
    return [[(r.prompt, r.output) for r in turn] for turn in (firsts, seconds)]


@pytest.mark.parametrize(
    ("strategy", "knobs"),
    [
        *((strategy, {}) for strategy in STRATEGIES),
        ("extra_buffer_lazy", {"enable_mixed_chunk": True, "chunked_prefill_size": 64}),
        ("extra_buffer", {"pp_size": 2}),
        ("no_buffer", {"enable_hierarchical_cache": True, "max_mamba_cache_size": 3}),
    ],
)
def test_tokens_are_those_of_the_plain_engine(
    build: Build, turns: Turns, tmp_path: Path, strategy: str, knobs: dict[str, Any]
) -> None:
    with tracing(tmp_path):
        engine = build(
            **RING,
            mamba_radix_cache_strategy=strategy,
            disable_overlap_schedule=strategy == "no_buffer" or "pp_size" in knobs,
            **knobs,
        )
        for turn in (*turns, *turns):
            asked = engine.generate([prompt for prompt, _ in turn], greedy(TOKENS))
            assert [request.output for request in asked] == [answer for _, answer in turn]
    report = judged(tmp_path)
    assert [finding.because for finding in report.found] == []
    assert set(report.verdicts.values()) == {"clean"}
    with slotscope.open(tmp_path) as trace:
        fullest = trace.sql("SELECT op, max(ring) AS n FROM events WHERE ring > 0 GROUP BY op")
        most = {row["op"]: row["n"] for row in fullest.to_pylist()}
    assert most["advance"] == RING["linear_replayssm_cache_len"] - 1
    carried = {"donate", "insert", "restore"} if strategy == "no_buffer" else set()
    if "enable_hierarchical_cache" in knobs:
        carried |= {"offload", "load_back"}
    assert most.keys() == carried | {"advance"}


@pytest.mark.parametrize("strategy", ["no_buffer", "extra_buffer_lazy"])
def test_who_is_retracted_with_inputs_in_the_ring_goes_on_alike(
    build: Build, turns: Turns, tmp_path: Path, strategy: str
) -> None:
    prompt, answer = turns[0][0]
    with tracing(tmp_path):
        engine = build(
            **RING,
            mamba_radix_cache_strategy=strategy,
            disable_overlap_schedule=strategy == "no_buffer",
        )
        for turn in range(9, 15):
            arrival = Arrival(0, f"r{turn}", prompt, greedy(TOKENS), retract_turn=turn)
            [request] = play(engine, [arrival])
            assert request.usage.retractions == 1
            assert request.output == answer
            engine.flush_cache()
    report = judged(tmp_path)
    assert [finding.because for finding in report.found] == []


@given(
    state_chunk=st.sampled_from([1, 16, 64]),
    page=st.sampled_from([1, 16, 48, 64, 512]),
    interval=st.integers(1, 300),
    length=st.integers(1, 20),
    off=st.sampled_from([(), ("track-grid",), ("checkpoint-grid",)]),
)
def test_each_snapshot_step_is_a_flush_step(
    state_chunk: int, page: int, interval: int, length: int, off: tuple[str, ...]
) -> None:
    grids = Grids.derive(state_chunk, page, interval, Patches.without(off))
    cadence, pending = Cadence(length, grids), 0
    for before in range(2 * min(grids.track, 600)):
        folds = cadence.folds(pending, before, before + 1)
        assert folds or grids.crossed(before, before + 1) is None
        assert folds or (before + 1) % interval
        pending = 0 if folds else pending + 1
        assert pending < length


def test_drafters_are_refused(build: Build) -> None:
    with pytest.raises(ConfigError, match="all its steps are verifies"):
        build(**RING, speculative_algorithm="NGRAM")
