"""What engine tests ask for: prompts without structure, so many greedy tokens."""

from __future__ import annotations

import random

from slotscope.engine.request import SamplingParams


def greedy(tokens: int) -> SamplingParams:
    """So many tokens, whatever they are."""
    return SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)


def random_prompt(length: int, seed: int) -> tuple[int, ...]:
    """Token ids without structure."""
    draw = random.Random(seed)
    return tuple(draw.randrange(1, 100) for _ in range(length))
