"""Sampling: as asked, and with a seed the same however the tokens come about."""

from __future__ import annotations

from collections.abc import Callable

import torch
from asking import DRAFTERS, random_prompt

from slotscope.engine.engine import Engine
from slotscope.engine.request import SamplingParams
from slotscope.engine.sampler import Sampler

FLAT = torch.zeros(1, 4000, 5)
PLACES = torch.arange(10, 4010)[None]


def draw(logits: torch.Tensor, **asked: object) -> torch.Tensor:
    """Tokens of one row."""
    params = SamplingParams(**asked)  # type: ignore[arg-type]
    return Sampler(0, torch.device("cpu")).choose(logits, [params], PLACES[:, : logits.shape[1]])[
        0
    ][0]


def test_draws_follow_the_probabilities() -> None:
    for asked in ({}, {"seed": 5}):
        counts = draw(FLAT, **asked).bincount(minlength=5)
        assert counts.min() > 600, "each of five should come about 800 times"


def test_only_the_likeliest_are_drawn() -> None:
    logits = torch.tensor([3.0, 2.0, 1.0, 0.0, -1.0]).expand(1, 500, 5)
    assert set(draw(logits, top_k=2).tolist()) == {0, 1}
    assert set(draw(logits, top_p=0.6).tolist()) == {0}
    assert set(draw(logits, temperature=0).tolist()) == {0}


def test_a_row_that_is_no_number_still_gets_a_token() -> None:
    logits = FLAT[:, :3].clone()
    logits[0, 1] = torch.nan
    sampler = Sampler(0, torch.device("cpu"))
    tokens, logprobs = sampler.choose(logits, [SamplingParams()], PLACES[:, :3])
    assert tokens.max() < 5
    assert logprobs.isnan().tolist() == [[False, True, False]]


def test_a_seed_gives_the_same_text_with_and_without_drafts(build: Callable[..., Engine]) -> None:
    prompts = [random_prompt(40, seed=at) for at in range(2)]
    asked = SamplingParams(max_new_tokens=24, temperature=0.8, seed=7, ignore_eos=True)
    texts = [
        [request.output for request in build(**knobs).generate(batch, asked)]
        for knobs, batch in (
            ({}, prompts),
            (DRAFTERS["NEXTN"], prompts),
            (DRAFTERS["tree"], prompts),
            ({"disable_overlap_schedule": True}, prompts[:1]),
        )
    ]
    assert texts[0] == texts[1] == texts[2]
    assert texts[3] == texts[0][:1]
    assert len(set(texts[0][0])) > 5
