"""A verify that gets no spare writes into the kept checkpoint, which the prefill then gives away.

SGLang's own test switch fails the allocation; a pool that is full does it too. Up to 0.5.21 the
checkpoint goes to the tree under the depth that the prefill had left, and holds what the verify in
flight makes of it: docs/found/sglang-0.5.21-kept-slot-written-in-flight.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from real_sglang import NEWEST, python
from tiny_checkpoints import qwen3_next
from traced_sglang import assert_clean, assert_pool_is_sglang_s, random_tokens, traced_sglang

import slotscope
from slotscope.instrument import check

pytestmark = pytest.mark.sglang

BOUNDARY = 256
TOKENS = 8
LENGTHS = (BOUNDARY - 1, BOUNDARY - 6, 2 * BOUNDARY - 1)
FLAGS: dict[str, Any] = {
    "mamba_radix_cache_strategy": "extra_buffer_lazy",
    "mamba_track_interval": BOUNDARY,
    "page_size": 64,
    "speculative_algorithm": "NEXTN",
    "speculative_num_steps": 2,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 3,
}
Answers = list[list[int]]


def serve(release: str, trace: Path) -> tuple[Answers, Answers]:
    """Cold and warm answers for each length."""
    variables = {"SGLANG_TEST_MAMBA_LAZY_ALLOC_FAIL": "1"}
    cold, warm = [], []
    with traced_sglang(
        qwen3_next(), trace, release=release, variables=variables, **FLAGS
    ) as engine:
        for length in LENGTHS:
            prompt = random_tokens(length, seed=length)
            for answers in (cold, warm):
                answers.append(engine.ask([prompt], TOKENS)[0].tokens)
    return cold, warm


def right() -> Answers:
    checkpoint = qwen3_next()
    return [checkpoint.reference(random_tokens(n, seed=n), TOKENS) for n in LENGTHS]


@pytest.mark.parametrize("release", ["0.5.17", "0.5.21"])
def test_a_kept_checkpoint_that_is_written_in_flight_is_found(release: str, tmp_path: Path) -> None:
    if not python(release).exists():
        pytest.skip(f"SGLANG={release} make test-sglang")
    cold, warm = serve(release, tmp_path / "trace")
    assert cold == right()
    assert warm[0] != cold[0]
    assert warm[1] == cold[1]
    with slotscope.open(tmp_path / "trace") as trace:
        report = check.run(trace)
        begins = trace.sql("FROM events WHERE op = 'request.begin'").to_pylist()
    said = {verdict.detector: verdict.verdict for verdict in report.verdicts}
    # The slot that the request got in its place is given away too, and nobody wrote that one.
    assert (said["D1"], said["D2"]) == ("found", "found")
    assert {said[each] for each in ("D3", "D4", "D10")} == {"clean"}
    near = {begin["request"] for begin in begins if begin["label"] % BOUNDARY == BOUNDARY - 1}
    assert {finding.request for finding in report.findings} <= near
    assert {finding.detector for finding in report.findings} == {"D1"}
    told = " ".join(finding.because for finding in report.findings)
    assert "as a state of 192 tokens" in told
    assert "as a state of 448 tokens" in told


@pytest.mark.skipif(not python(NEWEST).exists(), reason="make test-sglang")
def test_without_a_spare_the_newest_release_gives_nothing_away(tmp_path: Path) -> None:
    cold, warm = serve(NEWEST, tmp_path / "trace")
    assert cold == warm == right()
    with slotscope.open(tmp_path / "trace") as trace:
        assert_clean(trace)
        assert_pool_is_sglang_s(trace)
