"""A sound engine is never accused: every accepted configuration, under a load that mixes all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import DRAFTERS, Build

from slotscope.engine.config import STRATEGIES
from tests.end_to_end.load import make_load, run_load
from tests.end_to_end.traced import judged, tracing

ACCEPTED = [
    (strategy, drafter, overlap)
    for strategy in STRATEGIES
    for drafter in DRAFTERS
    for overlap in (0, 1)
    if not (strategy == "no_buffer" and overlap)
]
SEEDS = (2, 3)
TIGHT: dict[str, Any] = {
    "chunked_prefill_size": 100,  # no multiple of the state chunk
    "max_total_tokens": 1100,
}
PAGE_SIZES = (1, 16)
SLOTS = {"no_buffer": 6, "extra_buffer": 13, "extra_buffer_lazy": 9}
"""Just enough for what runs at once, so that checkpoints are evicted and spares can't be had."""

EXERCISED = {"restore", "evict", "donate", "request.end aborted", "request.end finished"}


@pytest.fixture(scope="module")
def right(build: Build) -> dict[int, list[list[int]]]:
    """What the plainest engine answers: serial, nothing drafted, nothing reused."""
    plain = build(disable_overlap_schedule=True, disable_radix_cache=True)
    answers = {}
    for seed in SEEDS:
        load = make_load(seed)
        ended = plain.generate([each.prompt for each in load], [each.sampling for each in load])
        answers[seed] = [request.output for request in ended]
    return answers


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("strategy", "drafter", "overlap"), ACCEPTED)
def test_nothing_is_found_where_nothing_is_wrong(
    build: Build,
    right: dict[int, list[list[int]]],
    tmp_path: Path,
    strategy: str,
    drafter: str,
    overlap: int,
    seed: int,
) -> None:
    load = make_load(seed)
    with tracing(tmp_path / "trace"):
        engine = build(
            **TIGHT,
            page_size=1 if strategy == "no_buffer" else PAGE_SIZES[seed % 2],
            max_mamba_cache_size=SLOTS[strategy],
            mamba_radix_cache_strategy=strategy,
            disable_overlap_schedule=not overlap,
            **DRAFTERS[drafter],
        )
        requests = run_load(engine, load)
    for request, answer in zip(requests, right[seed], strict=True):
        assert request.finished
        expected = answer[: len(request.output)] if request.finish_reason == "abort" else answer
        assert request.output == expected, request.request_id
    told = judged(tmp_path / "trace")
    assert [finding.because for finding in told.found] == []
    assert set(told.verdicts.values()) == {"clean"}
    missing = EXERCISED - told.ops.keys()
    assert not missing, "the load does not exercise these"
