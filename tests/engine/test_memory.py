"""Memory: on which rank of decode context a token's keys and values lie."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.memory import Memory, Shape
from slotscope.engine.pages import PagePool

SHAPE = Shape(2, 1, 3, 0, 1, 1, 1, 1, 1)


def memory(ranks: int, tokens: int) -> Memory:
    """Numbers that tell where they are."""
    made = Memory.allocate(
        SHAPE,
        tokens=tokens,
        ranks=ranks,
        slots=0,
        rows=0,
        draft_tokens=0,
        dtype=torch.float64,
        device=torch.device("cpu"),
    )
    for pool in (made.keys, made.values):
        pool.copy_(torch.arange(pool.numel()).view(pool.shape))
    return made


def at(pool: Tensor, ranks: int, location: int) -> Tensor:
    """[layers, kv heads, head dim]."""
    return pool[:, location % ranks, location // ranks]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_token_is_kept_on_its_rank_and_nowhere_else(ranks: int) -> None:
    kept = memory(ranks, 8)
    expected = kept.keys.clone(), kept.values.clone()
    locations = torch.tensor([6, 1, 3])
    keys, values = torch.rand(2, 3, 1, 3, dtype=torch.float64)
    for n, location in enumerate(locations.tolist()):
        at(expected[0], ranks, location)[1] = keys[n]
        at(expected[1], ranks, location)[1] = values[n]
    kept.keep(1, locations, keys, values)
    assert torch.equal(kept.keys, expected[0])
    assert torch.equal(kept.values, expected[1])


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_moves_may_change_its_rank(ranks: int) -> None:
    kept = memory(ranks, 8)
    old = kept.keys.clone(), kept.values.clone()
    expected = old[0].clone(), old[1].clone()
    moves = {5: 4, 6: 5}  # from, to: one's target is the other's source
    for source, target in moves.items():
        for pool, before in zip(expected, old, strict=True):
            at(pool, ranks, target).copy_(at(before, ranks, source))
    kept.move(torch.tensor(list(moves)), torch.tensor(list(moves.values())))
    assert torch.equal(kept.keys, expected[0])
    assert torch.equal(kept.values, expected[1])


def test_a_page_of_the_tree_is_one_page_of_each_rank() -> None:
    page, ranks = 4, 3
    pool = PagePool(10 * page * ranks, page * ranks)
    pool.allocate(page * ranks)
    taken = pool.allocate(2 * page * ranks)
    assert taken is not None
    assert [location % ranks for location in taken] == [t % ranks for t in range(len(taken))]
    for rank in range(ranks):
        rows = [location // ranks for location in taken if location % ranks == rank]
        assert rows == list(range(2 * page, 4 * page))
