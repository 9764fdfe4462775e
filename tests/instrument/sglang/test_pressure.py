"""What happens under pressure in the real SGLang: nothing of it escapes the plugin's sight.

Requests that are retracted and start over, one that is aborted, edges of the tree that are cut,
nodes that are pinned, a streaming session that keeps its row between turns; and checkpoints that
leave for the host's memory and come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tiny_checkpoints import qwen3_next
from traced_sglang import assert_clean, assert_pool_is_sglang_s, random_tokens, rest, traced_sglang

import slotscope
from slotscope.instrument.trace import Trace

pytestmark = pytest.mark.sglang

TRACKED: dict[str, Any] = {"mamba_track_interval": 64, "page_size": 64}
TOKENS = 24


def count(trace: Trace, where: str) -> int:
    return trace.sql(f"FROM events WHERE {where}").num_rows


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """Every seventh forward retracts; the tree's core is the one in Python, whose cuts are seen."""
    checkpoint = qwen3_next()
    variables = {
        "SGLANG_TEST_RETRACT": "1",
        "SGLANG_TEST_RETRACT_INTERVAL": "7",
        "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND": "python",
    }
    folder = tmp_path_factory.mktemp("pressed") / "trace"
    prompts = [random_tokens(length, seed=length) for length in (200, 130, 63)]
    branch = prompts[0][:128] + random_tokens(40, seed=1)
    with traced_sglang(
        checkpoint,
        folder,
        variables=variables,
        mamba_radix_cache_strategy="extra_buffer_lazy",
        enable_streaming_session=True,
        **TRACKED,
    ) as engine:
        for _ in ("cold", "warm"):
            for prompt, answer in zip(prompts, engine.ask(prompts, TOKENS), strict=True):
                assert answer.tokens == checkpoint.reference(prompt, TOKENS)
            rest()
        (answer,) = engine.ask([branch], TOKENS)
        assert answer.tokens == checkpoint.reference(branch, TOKENS)
        rest()
        assert engine.abort(random_tokens(100, seed=2), behind=3) == "abort"
        rest()
        engine.open_session("talk")
        said: list[int] = []
        for turn in range(2):
            new = random_tokens(90, seed=3 + turn)
            (answer,) = engine.ask([new], TOKENS, session="talk")
            assert answer.tokens == checkpoint.reference(said + new, TOKENS)
            said += new + answer.tokens
            rest()
        engine.close_session("talk")
        rest()
    with slotscope.open(folder) as trace:
        yield trace


def test_retraction_abort_split_and_session_contradict_nothing(pressed: Trace) -> None:
    assert_clean(pressed)
    assert_pool_is_sglang_s(pressed)


def test_a_retracted_request_comes_back_as_its_next_attempt(pressed: Trace) -> None:
    assert count(pressed, "op = 'retract'") >= 2
    attempts = pressed.sql("SELECT max(attempt) AS most FROM requests").to_pylist()
    assert attempts[0]["most"] >= 1
    assert count(pressed, "op = 'retract' AND depth IS NULL") == 0


def test_an_aborted_request_ends_as_one(pressed: Trace) -> None:
    assert count(pressed, "op = 'request.end' AND outcome = 'aborted'") == 1


def test_the_python_core_cuts_edges_in_sight(pressed: Trace) -> None:
    cuts = pressed.sql("FROM events WHERE op = 'split'").to_pylist()
    assert 128 in {cut["label"] for cut in cuts}


def test_every_lock_is_undone_by_the_time_that_nothing_runs(pressed: Trace) -> None:
    rows = pressed.sql("FROM events WHERE op IN ('lock', 'unlock')").to_pylist()
    held: Counter[int] = Counter()
    for row in rows:
        held[row["node"]] += 1 if row["op"] == "lock" else -1
    assert rows
    assert set(held.values()) == {0}
    assert any(row["request"] is not None for row in rows)


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """Nine prompts through a pool for three, with a host tier that keeps what is evicted."""
    checkpoint = qwen3_next()
    folder = tmp_path_factory.mktemp("tiered") / "trace"
    prompts = [random_tokens(200, seed=10 + i) for i in range(9)]
    with traced_sglang(
        checkpoint,
        folder,
        mamba_radix_cache_strategy="extra_buffer",
        disable_overlap_schedule=True,
        max_mamba_cache_size=11,
        max_running_requests=3,
        enable_hierarchical_cache=True,
        hicache_ratio=4.0,
        hicache_io_backend="direct",
        hicache_mem_layout="page_first_direct",
        hicache_write_policy="write_through",
        **TRACKED,
    ) as engine:
        for cached in (0, 192):
            for start in range(0, 9, 3):
                some = prompts[start : start + 3]
                for prompt, answer in zip(some, engine.ask(some, 4), strict=True):
                    assert answer.tokens == checkpoint.reference(prompt, 4)
                    assert answer.cached_tokens == cached
                rest()
    with slotscope.open(folder) as trace:
        yield trace


def test_the_host_tier_contradicts_nothing(tiered: Trace) -> None:
    assert_clean(tiered)
    assert_pool_is_sglang_s(tiered)


def test_what_leaves_for_the_host_comes_back_under_the_same_label(tiered: Trace) -> None:
    rows = tiered.sql("FROM events WHERE op IN ('offload', 'load_back')").to_pylist()
    left = {row["node"]: row["label"] for row in rows if row["op"] == "offload"}
    back = [row for row in rows if row["op"] == "load_back"]
    assert {row["role"] for row in back} == {"node", "live"}
    assert {row["label"] for row in back} == {192}
    assert all(left[row["node"]] == row["label"] for row in back)
    assert count(tiered, "op = 'evict'") >= 6
    assert count(tiered, "op = 'match' AND outcome = 'hit' AND slot IS NULL") >= 6
