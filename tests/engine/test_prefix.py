"""A prefix's hash depends on its tokens, its length and its namespace, and on nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import Build, greedy, random_prompt
from hypothesis import given, settings
from hypothesis import strategies as st

import slotscope
from slotscope.engine.prefix import PrefixHash
from slotscope.engine.request import Request
from slotscope.instrument import probe

TOKENS = list(range(5, 40))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, len(TOKENS)), min_size=1, max_size=6))
def test_whatever_was_asked_before_makes_no_difference(depths: list[int]) -> None:
    kept = PrefixHash("key")
    assert [kept.at(TOKENS, d) for d in depths] == [PrefixHash("key").at(TOKENS, d) for d in depths]


def test_other_tokens_lengths_and_namespaces_hash_otherwise() -> None:
    hashes = [
        PrefixHash(key).at(tokens, depth)
        for key, tokens, depth in (
            ("", TOKENS, 8),
            ("", TOKENS, 9),
            ("", TOKENS[1:], 8),
            ("k", TOKENS, 8),
            ("\ud800", TOKENS, 8),
        )
    ]
    assert len(set(hashes)) == len(hashes)


def test_nothing_is_hashed_while_nothing_is_traced() -> None:
    assert Request("r", (1, 2, 3), greedy(1)).token_hash(2) is None


@pytest.mark.parametrize("strategy", ["extra_buffer", "extra_buffer_lazy"])
def test_match_insert_donate_and_restore_tell_the_hash_of_one_prefix(
    build: Build, tmp_path: Path, strategy: str
) -> None:
    prompt = random_prompt(130, seed=1)
    engine = build(mamba_radix_cache_strategy=strategy)
    probe.start(tmp_path, collector=False)
    try:
        for _ in range(2):
            engine.generate([prompt], greedy(2), extra_key="tenant")
    finally:
        probe.stop()
    with slotscope.open(tmp_path) as trace:
        told = trace.sql(
            "SELECT op, label, token_hash FROM events WHERE op IN ('match', 'insert', 'donate', "
            "'restore') AND outcome IS DISTINCT FROM 'miss'"
        ).to_pylist()
    assert {row["op"] for row in told} == {"match", "insert", "donate", "restore"}
    text = [*prompt, *engine.generate([prompt], greedy(2))[0].output]
    for row in told:
        assert row["token_hash"] == PrefixHash("tenant").at(text, row["label"])
