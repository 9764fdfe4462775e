"""Decode context on several ranks: the same tokens, and checkpoints of decode that are right."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from asking import DRAFTERS, Build, engine_on, greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.request import RequestError

PROMPTS = [random_prompt(length, seed=length) for length in (5, 70, 130)]
PAGES: dict[str, Any] = {"page_size": 16, "dcp_size": 8}
"""The tree's page is 128, so decode, with an interval of 64, tracks every second one."""
close = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def plain(build: Build) -> list[list[int]]:
    """The tokens of the plainest engine: one rank, serial, nothing drafted, nothing reused."""
    engine = build(disable_overlap_schedule=True, disable_radix_cache=True)
    return [request.output for request in engine.generate(PROMPTS, greedy(40))]


@pytest.mark.parametrize(
    ("ranks", "drafter"), [(2, "plain"), (4, "NEXTN"), *((8, drafter) for drafter in DRAFTERS)]
)
def test_ranks_change_no_token(
    build: Build, plain: list[list[int]], ranks: int, drafter: str
) -> None:
    """Overlapped, drafted, and the second time reused."""
    engine = build(page_size=16, dcp_size=ranks, **DRAFTERS[drafter])
    for _ in range(2):
        assert [request.output for request in engine.generate(PROMPTS, greedy(40))] == plain


def test_ranks_and_stages_go_together(build: Build, plain: list[list[int]]) -> None:
    """Each stage has its own layers' keys and values, on as many ranks."""
    engine = build(**PAGES, pp_size=2, disable_overlap_schedule=True, **DRAFTERS["NEXTN"])
    for _ in range(2):
        assert [request.output for request in engine.generate(PROMPTS, greedy(40))] == plain


@pytest.mark.parametrize(
    ("strategy", "drafter"),
    [
        ("extra_buffer", "plain"),
        ("extra_buffer", "NEXTN"),
        ("extra_buffer_lazy", "plain"),
        ("extra_buffer_lazy", "NGRAM"),
    ],
)
def test_a_checkpoint_that_decode_left_continues_as_a_cold_prefill_does(
    build: Build, strategy: str, drafter: str
) -> None:
    """Cold and warm, by the log-probabilities of each token. The donor's prompt ends before 256, so
    what is resumed there was written by a decode or by a verify; and it was kept at 320, which is
    a multiple of the interval but no page of the tree."""
    engine = build(**PAGES, mamba_radix_cache_strategy=strategy, **DRAFTERS[drafter])
    [donor] = engine.generate([random_prompt(200, seed=3)], greedy(125))
    [warm] = engine.generate([donor.tokens], greedy(24))
    assert engine.flush_cache()
    [cold] = engine.generate([donor.tokens], greedy(24))
    assert (warm.usage.cached_tokens, cold.usage.cached_tokens) == (256, 0)
    assert warm.output == cold.output
    close(torch.tensor(warm.logprobs), torch.tensor(cold.logprobs))


def test_latent_attention_is_shared_by_ranks_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = make_checkpoint(tmp_path_factory.mktemp("model"), family="kimi_linear")
    [alone] = engine_on(folder).generate(PROMPTS[2:], greedy(40))
    engine = engine_on(folder, **PAGES, speculative_algorithm="NGRAM")
    for _ in range(2):
        [shared] = engine.generate(PROMPTS[2:], greedy(40))
        assert shared.output == alone.output
        close(torch.tensor(shared.logprobs), torch.tensor(alone.logprobs))


def test_each_rank_has_room_of_its_own(build: Build) -> None:
    """300 tokens don't fit in 200 locations, but do in 200 of each of two ranks."""
    prompt = random_prompt(300, seed=1)
    with pytest.raises(RequestError, match="room for 200"):
        build(max_total_tokens=200).generate([prompt], greedy(4))
    build(max_total_tokens=200, dcp_size=2).generate([prompt], greedy(4))


def test_no_buffer_refuses_ranks(build: Build) -> None:
    with pytest.raises(ConfigError, match=r"1 x 2 tokens.*dcp-size 1"):
        build(dcp_size=2, mamba_radix_cache_strategy="no_buffer", disable_overlap_schedule=True)


def test_no_rank_at_all_is_refused(build: Build) -> None:
    with pytest.raises(ConfigError, match="--dcp-size is 0"):
        build(dcp_size=0)
