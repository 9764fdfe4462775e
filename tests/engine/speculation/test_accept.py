"""What a verify takes of a chain and of a tree, and where the path's keys and values go."""

from __future__ import annotations

import torch

from slotscope.engine.forward import ancestry
from slotscope.engine.memory import Memory, Shape
from slotscope.engine.speculation.accept import accept, along, compact
from slotscope.engine.speculation.draft import Draft

# The root has children 1 and 2, 1 has 3, 2 has 4, and 4 has 5.
PARENTS = torch.tensor([[-1, 0, 0, 1, 2, 4]])


def tree(tokens: list[list[int]]) -> Draft:
    return Draft(torch.tensor(tokens), PARENTS.repeat(len(tokens), 1), levels=3)


def test_a_chain_is_taken_up_to_the_first_other_token() -> None:
    draft = Draft(torch.tensor([[5, 6, 7], [5, 6, 7], [5, 6, 7]]))
    chosen = torch.tensor([[5, 6, 9, 7], [8, 6, 7, 9], [5, 6, 7, 8]])
    accepted = accept(draft, chosen)
    assert accepted.length.tolist() == [3, 1, 4]
    assert accepted.index.tolist() == [[0, 1, 2, -1], [0, -1, -1, -1], [0, 1, 2, 3]]


def test_a_tree_is_taken_along_one_branch() -> None:
    draft = tree([[10, 20, 30, 40, 50]] * 4)
    chosen = torch.tensor(
        [
            [20, 0, 40, 0, 50, 0],  # 0, 2, 4, 5
            [10, 30, 0, 0, 0, 0],  # 0, 1, 3
            [20, 30, 41, 0, 50, 0],  # 0, 2: neither 3, whose parent is refused, nor 5
            [11, 30, 40, 0, 50, 0],  # the root alone
        ]
    )
    accepted = accept(draft, chosen)
    assert accepted.length.tolist() == [4, 3, 2, 1]
    assert accepted.index.tolist() == [
        [0, 2, 4, 5],
        [0, 1, 3, -1],
        [0, 2, -1, -1],
        [0, -1, -1, -1],
    ]
    assert along(accepted.path, chosen)[0].tolist() == [20, 40, 50, 0]


def test_a_tree_of_one_branch_is_a_chain() -> None:
    tokens, chosen = torch.randint(0, 2, (64, 4)), torch.randint(0, 2, (64, 5))
    parents = torch.arange(-1, 4).repeat(64, 1)
    chain, one = accept(Draft(tokens), chosen), accept(Draft(tokens, parents, 4), chosen)
    assert torch.equal(chain.index, one.index)
    assert torch.equal(chain.length, one.length)


def test_depths_count_edges_from_the_root() -> None:
    assert tree([[0] * 5]).depths().tolist() == [[0, 1, 1, 2, 2, 3]]
    assert Draft(torch.zeros(2, 3)).depths().tolist() == [[0, 1, 2, 3]]
    assert ancestry(PARENTS)[0, 5].tolist() == [True, False, True, False, True, True]


def test_a_path_is_moved_to_consecutive_places_and_nothing_else_moves() -> None:
    shape = Shape(2, 1, 3, 1, 1, 1, 1, 1, 1)
    sizes = {"tokens": 30, "slots": 1, "rows": 1, "draft_tokens": 6}
    memory = Memory.allocate(shape, **sizes, dtype=torch.float64, device=torch.device("cpu"))
    for pool in (memory.keys, memory.values):
        pool.copy_(torch.randn(pool.shape))
    before = memory.keys.clone(), memory.values.clone()
    locations = torch.tensor([[7, 3, 9, 1, 5, 20], [8, 4, 10, 2, 6, 21]])
    path = torch.tensor([[0, 2, 4, 5], [0, 1, 3, 3]])

    compact(memory, locations, path)

    for pool, old in zip((memory.keys, memory.values), before, strict=True):
        expected = old.clone()
        expected[:, 0, [7, 3, 9, 1]] = old[:, 0, [7, 9, 5, 20]]
        expected[:, 0, [8, 4, 10, 2]] = old[:, 0, [8, 4, 2, 2]]
        assert torch.equal(pool, expected)
