"""Retraction: where KV runs short somebody gives way, and nobody can tell from the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import Build, greedy, random_prompt

from slotscope.engine.config import STRATEGIES
from slotscope.engine.engine import Engine
from slotscope.engine.request import Delta, Request, SamplingParams
from tests.end_to_end.traced import judged, tracing

PROMPTS = [random_prompt(length, seed=length) for length in (40, 70, 130, 100)]
TOKENS = 50
TIGHT = {"max_total_tokens": 512, "max_mamba_cache_size": 20}
"""All prompts and 43 tokens of each fit together."""
CONFIGURATIONS = [
    (strategy, drafter, int(strategy != "no_buffer"))
    for strategy in STRATEGIES
    for drafter in ("", "NGRAM", "NEXTN")
]


def knobs(strategy: str, drafter: str, overlap: int, **more: Any) -> dict[str, Any]:
    """Flags of one configuration, short of KV."""
    return (
        TIGHT
        | {
            "mamba_radix_cache_strategy": strategy,
            "speculative_algorithm": drafter,
            "disable_overlap_schedule": not overlap,
        }
        | more
    )


def run_out(engine: Engine) -> None:
    """Turn the loop until it is idle, where it checks its own invariants."""
    engine.turn()
    while not engine.scheduler.idle:
        engine.turn()


@pytest.fixture(scope="module")
def plain(build: Build) -> list[list[int]]:
    """What each prompt is answered where there is room for all."""
    engine = build(disable_overlap_schedule=True, disable_radix_cache=True)
    return [request.output for request in engine.generate(PROMPTS, greedy(TOKENS))]


@pytest.mark.parametrize(("strategy", "drafter", "overlap"), CONFIGURATIONS)
def test_the_retracted_answer_as_if_nothing_had_happened(
    build: Build, plain: list[list[int]], tmp_path: Path, strategy: str, drafter: str, overlap: int
) -> None:
    with tracing(tmp_path):
        engine = build(**knobs(strategy, drafter, overlap))
        for _ in range(2):
            # The second time prefixes are found in the tree, which must be evicted first.
            served = engine.generate(PROMPTS, greedy(TOKENS))
            assert [request.output for request in served] == plain
    assert (retractions := engine.stats().retractions) > 0
    report = judged(tmp_path)
    assert report.ops["retract"] == retractions
    assert [finding.because for finding in report.found] == []
    assert set(report.verdicts.values()) == {"clean"}


def test_retraction_is_exact_with_pages_and_chunks(build: Build, plain: list[list[int]]) -> None:
    more = {"page_size": 16, "chunked_prefill_size": 64, "max_total_tokens": 544}
    engine = build(**knobs("extra_buffer_lazy", "NGRAM", 1, **more))
    assert [r.output for r in engine.generate(PROMPTS, greedy(TOKENS))] == plain
    assert engine.stats().retractions > 0


def test_a_stream_goes_on_where_it_was(build: Build, plain: list[list[int]]) -> None:
    engine = build(**knobs("extra_buffer", "", 1))
    streams: list[list[Delta]] = [[] for _ in PROMPTS]
    asked = [
        Request(f"q{at}", prompt, greedy(TOKENS), sink=streams[at].append)
        for at, prompt in enumerate(PROMPTS)
    ]
    for request in asked:
        engine.submit(request)
    run_out(engine)
    retractions = [request.usage.retractions for request in asked]
    assert sum(retractions) == engine.stats().retractions > 0
    assert 0 in retractions
    for stream, output in zip(streams, plain, strict=True):
        assert [token for delta in stream for token in delta.tokens] == output
        assert [bool(delta.finish_reason) for delta in stream] == [False] * (len(stream) - 1) + [
            True
        ]


def test_a_draw_with_a_seed_is_the_same_after_a_retraction(build: Build) -> None:
    drawn = SamplingParams(max_new_tokens=TOKENS, temperature=0.8, ignore_eos=True, seed=5)
    roomy = build()
    expected = [request.output for request in roomy.generate(PROMPTS, drawn)]
    tight = build(**knobs("extra_buffer_lazy", "NGRAM", 1))
    assert [request.output for request in tight.generate(PROMPTS, drawn)] == expected
    assert tight.stats().retractions > 0


def test_who_has_put_out_the_least_gives_way_and_goes_first_afterwards(build: Build) -> None:
    engine = build(**knobs("extra_buffer", "", 1))
    requests = [Request(f"q{at}", p, greedy(TOKENS)) for at, p in enumerate(PROMPTS)]
    for request in requests:
        engine.submit(request)
    while not engine.stats().retractions:
        before = {request: len(request.output) for request in requests}
        engine.turn()
    [gone] = [request for request in requests if request.usage.retractions]
    least = min(before.values())
    longest = max((r for r in requests if before[r] == least), key=lambda r: len(r.prompt))
    assert gone is longest
    engine.submit(Request("late", PROMPTS[0], greedy(1)))
    engine.turn()
    assert engine.scheduler.prefill.waiting[0] is gone
    run_out(engine)


def test_an_abort_while_retracted_ends_it_and_disturbs_nobody(
    build: Build, plain: list[list[int]]
) -> None:
    engine = build(**knobs("extra_buffer_lazy", "NEXTN", 1))
    requests = [Request(f"q{at}", p, greedy(TOKENS)) for at, p in enumerate(PROMPTS)]
    for request in requests:
        engine.submit(request)
    while not engine.scheduler.prefill.waiting or not engine.stats().retractions:
        engine.turn()
    gone = engine.scheduler.prefill.waiting[0]
    engine.abort(gone.request_id)
    run_out(engine)
    assert gone.finish_reason == "abort"
    for request, output in zip(requests, plain, strict=True):
        assert request is gone or request.output == output


def test_room_is_kept_for_those_who_run(build: Build) -> None:
    engine = build(max_total_tokens=280)
    first, second = (Request(f"q{at}", PROMPTS[at], greedy(100)) for at in (0, 1))
    engine.submit(first)
    for _ in range(3):
        engine.turn()
    engine.submit(second)
    engine.turn()
    # 280 hold both prompts, but not what the second asks for and 70 % of what the first does.
    assert list(engine.scheduler.prefill.waiting) == [second]
    run_out(engine)
    assert second.usage.retractions == first.usage.retractions == 0
