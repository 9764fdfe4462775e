"""Mixed prefill: those who decode step beside the prompts of others, and get the same tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import Build, greedy, random_prompt

import slotscope
from slotscope.engine.config import ConfigError
from slotscope.engine.schedule import Arrival, play
from tests.end_to_end.traced import judged, tracing

# The first decodes over the track depth 64 while the prompts of the others are prefilled.
PROMPTS = [random_prompt(length, seed=length) for length in (58, 200, 330, 61)]
TOKENS = 30
ARRIVALS = [
    Arrival(turn, f"q{at}", prompt, greedy(TOKENS))
    for at, (turn, prompt) in enumerate(zip((0, 2, 4, 9), PROMPTS, strict=True))
]


@pytest.mark.parametrize(
    ("strategy", "overlap", "stages"),
    [
        ("extra_buffer_lazy", 1, 1),
        ("extra_buffer", 1, 1),
        ("no_buffer", 0, 1),
        ("extra_buffer_lazy", 0, 2),
    ],
)
def test_a_mixed_prefill_is_exact(
    build: Build, tmp_path: Path, strategy: str, overlap: int, stages: int
) -> None:
    plain = build(disable_overlap_schedule=True, disable_radix_cache=True)
    expected = [request.output for request in plain.generate(PROMPTS, greedy(TOKENS))]
    with tracing(tmp_path):
        engine = build(
            enable_mixed_chunk=True,
            chunked_prefill_size=64,
            mamba_radix_cache_strategy=strategy,
            disable_overlap_schedule=not overlap,
            pp_size=stages,
        )
        served = play(engine, ARRIVALS)
        # What a step beside a prompt left in the tree is as good as any other checkpoint.
        longer = [request.tokens[:-1] for request in served]
        warm = [request.output for request in engine.generate(longer, greedy(4))]
    assert [request.output for request in served] == expected
    cold = [request.output for request in plain.generate(longer, greedy(4))]
    assert warm == cold
    report = judged(tmp_path)
    assert [finding.because for finding in report.found] == []
    with slotscope.open(tmp_path) as trace:
        mixed = trace.sql(
            "SELECT count(*) AS forwards, count(*) FILTER (kept) AS crossings FROM ("
            " SELECT forward, bool_or(op = 'copy' AND role <> 'node') AS kept FROM events"
            " WHERE kind = 'prefill' AND pool = 0 GROUP BY forward"
            " HAVING count(*) FILTER (op = 'advance') > 1)"
        ).to_pylist()[0]
    assert mixed["forwards"] > 3
    if strategy != "no_buffer" and stages == 1:
        assert mixed["crossings"] > 0


def test_who_finds_no_kv_waits_for_a_step_of_its_own(build: Build) -> None:
    engine = build(enable_mixed_chunk=True, chunked_prefill_size=64, max_total_tokens=512)
    served = play(engine, ARRIVALS)
    plain = build(disable_overlap_schedule=True, disable_radix_cache=True)
    assert [r.output for r in served] == [
        request.output for request in plain.generate(PROMPTS, greedy(TOKENS))
    ]


def test_a_mixed_prefill_refuses_speculation(build: Build) -> None:
    with pytest.raises(ConfigError, match="enable-mixed-chunk.*NGRAM.*Leave out"):
        build(enable_mixed_chunk=True, speculative_algorithm="NGRAM")
