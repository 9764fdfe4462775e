"""Parts of an attention merge to the whole, whichever keys lie in which part."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.layers.partial import merge, partial

ROWS, HEADS, QUERIES, KEYS, SIZE = 2, 3, 5, 11, 8


def whole(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    return (query @ key.mT * 0.3 + mask).softmax(-1) @ value


@pytest.mark.parametrize("spread", [1.0, 1000.0])  # of scores: one key takes all of the softmax
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_parts_merge_to_the_whole(ranks: int, spread: float) -> None:
    new = torch.Generator().manual_seed(ranks)
    query, key, value = (
        torch.randn(ROWS, HEADS, count, SIZE, generator=new, dtype=torch.float64)
        for count in (QUERIES, KEYS, KEYS)
    )
    query *= spread
    # Each query sees itself and what is before it, so the first ones see nothing on most ranks.
    hidden = torch.ones(QUERIES, KEYS, dtype=torch.bool).triu(1)
    mask = torch.zeros(ROWS, 1, QUERIES, KEYS, dtype=torch.float64).masked_fill(hidden, -torch.inf)
    parts = [
        partial(
            query,
            key[:, :, rank::ranks],
            value[:, :, rank::ranks],
            mask[..., rank::ranks],
            mask[..., rank::ranks].isneginf().all(-1),
            0.3,
        )
        for rank in range(ranks)
    ]
    expected = whole(query, key, value, mask)
    torch.testing.assert_close(merge(parts), expected, rtol=0, atol=1e-12)


def test_stale_memory_of_a_rank_that_has_nothing_to_see_is_not_seen() -> None:
    one, nan = torch.ones(1, 1, 1, 2), torch.full((1, 1, 1, 2), torch.nan)
    hidden = torch.full((1, 1, 1, 1), -torch.inf)
    sees, blind = torch.tensor([[[False]]]), torch.tensor([[[True]]])
    parts = [
        partial(one, one, 3 * one, torch.zeros(1, 1, 1, 1), sees, 1.0),
        partial(one, nan, nan, hidden, blind, 1.0),
    ]
    assert merge(parts).tolist() == [[[[3.0, 3.0]]]]


def test_narrow_numbers_are_summed_wide() -> None:
    """300 equal keys of bfloat16, whose sum it can't hold."""
    key = torch.ones(1, 1, 300, 2, dtype=torch.bfloat16)
    sees = torch.tensor([[[False]]])
    seen, normaliser = partial(key[:, :, :1], key, key, torch.zeros(1, 1, 1, 300), sees, 0.0)
    torch.testing.assert_close(seen, torch.ones(1, 1, 1, 2))
    torch.testing.assert_close(normaliser, torch.tensor([[[[300.0]]]]).log())
