"""Trees of drafts, on one tree drawn by hand and on random ones built and taken apart again."""

from __future__ import annotations

import random

import pytest
import torch
from sgl_kernel import speculative
from torch import Tensor

# Two requests, topk 2, one tree: 0 -> (1 -> (3, 4), 2).
PARENT_LIST = torch.tensor([[-1, 0, 1], [-1, 0, 1]])
SELECTED = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 3]])
CHILD, SIBLING = [1, 3, -1, -1, -1], [-1, 2, -1, 4, -1]


def links(batch: int, nodes: int) -> list[Tensor]:
    return [torch.full((batch, nodes), -1) for _ in range(3)]


@pytest.mark.parametrize("mode", [0, 1], ids=["whole", "tree"])
def test_a_selection_becomes_a_tree(mode: int) -> None:
    lengths = torch.tensor([6, 2])
    widths = [length + 5 if mode == 0 else 5 for length in lengths.tolist()]
    mask = torch.ones(sum(5 * width for width in widths), dtype=torch.bool)
    positions, (index, child, sibling) = torch.zeros(10, dtype=torch.int64), links(2, 5)
    speculative.build_tree_kernel_efficient_cpu(
        PARENT_LIST, SELECTED, lengths, mask, positions, index, child, sibling, 2, 2, 5, mode
    )
    assert index.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert child.tolist() == [CHILD, CHILD]
    assert sibling.tolist() == [SIBLING, SIBLING]
    assert positions.tolist() == [6, 7, 7, 8, 8, 2, 3, 3, 4, 4]
    paths = [{0}, {0, 1}, {0, 2}, {0, 1, 3}, {0, 1, 4}]
    for part, width in zip(mask.split([5 * width for width in widths]), widths, strict=True):
        rows = part.view(5, width)
        assert rows[:, : width - 5].all()
        assert [set(row.nonzero().flatten().tolist()) for row in rows[:, width - 5 :]] == paths


def test_a_walk_takes_the_child_that_the_model_wanted() -> None:
    index = torch.arange(10).view(2, 5)
    child, sibling = torch.tensor([CHILD] * 2), torch.tensor([SIBLING] * 2)
    candidates = torch.tensor([[7, 20, 21, 30, 31]] * 2)
    wanted = torch.tensor([[20, 31, 0, 0, 99], [21, 0, 98, 0, 0]])
    predicts = torch.full((10,), -1)
    accepted, count = torch.full((2, 3), -1), torch.zeros(2, dtype=torch.int64)
    speculative.verify_tree_greedy_cpu(
        predicts, accepted, count, candidates, index, child, sibling, wanted
    )
    assert accepted.tolist() == [[0, 1, 4], [5, 7, -1]]
    assert count.tolist() == [2, 1]
    assert predicts.tolist() == [20, 31, -1, -1, 99, 21, -1, 98, -1, -1]


def test_a_walk_ends_where_the_room_does() -> None:
    index, child, sibling = torch.arange(3)[None], torch.tensor([[1, 2, -1]]), links(1, 3)[0]
    predicts, accepted = torch.full((3,), -1), torch.full((1, 2), -1)
    count = torch.zeros(1, dtype=torch.int64)
    wanted = torch.tensor([[5, 6, 7]])
    speculative.verify_tree_greedy_cpu(
        predicts, accepted, count, torch.tensor([[4, 5, 6]]), index, child, sibling, wanted
    )
    assert accepted.tolist() == [[0, 1]]
    assert predicts.tolist() == [5, 6, -1]


@pytest.mark.parametrize("seed", range(20))
def test_a_mask_tells_the_whole_tree(seed: int) -> None:
    draw, nodes = random.Random(seed), 9
    parents = [-1, *(draw.randrange(node) for node in range(1, nodes))]
    mask = torch.eye(nodes, dtype=torch.bool)
    for node in range(1, nodes):
        mask[node] |= mask[parents[node]]
    positions, (index, child, sibling) = torch.zeros(nodes, dtype=torch.int64), links(1, nodes)
    speculative.reconstruct_indices_from_tree_mask(
        mask.flatten(), torch.tensor([4]), positions, index, child, sibling, 1, nodes
    )
    assert positions.tolist() == [int(row.sum()) + 3 for row in mask]
    children: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for node in range(1, nodes):
        children[parents[node]].append(node)
    for node, kids in children.items():
        assert child[0, node] == (kids[0] if kids else -1)
        for kid, after in zip(kids, [*kids[1:], -1][: len(kids)], strict=True):
            assert sibling[0, kid] == after
    assert sibling[0, 0] == -1
