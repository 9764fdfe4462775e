"""Routers against a loop over tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.layers.moe import GroupedRouter

HIDDEN, EXPERTS = 12, 8
NEW = torch.Generator().manual_seed(0)
PROJECT = torch.randn(EXPERTS, HIDDEN, generator=NEW, dtype=torch.float64)
BIAS = torch.randn(EXPERTS, generator=NEW, dtype=torch.float64)
X = torch.randn(30, HIDDEN, generator=NEW, dtype=torch.float64)


def one_by_one(router: GroupedRouter, x: Tensor) -> list[dict[int, float]]:
    """For each token its experts and their weights."""
    size, result = EXPERTS // router.groups, []
    for token in x:
        score = (1 / (1 + (-(router.project @ token)).exp())).tolist()
        liked = [s + b for s, b in zip(score, router.bias.tolist(), strict=True)]
        groups = [range(g * size, (g + 1) * size) for g in range(router.groups)]
        groups.sort(key=lambda g: -sum(sorted((liked[e] for e in g), reverse=True)[:2]))
        open_ = [e for group in groups[: router.top_groups] for e in group]
        best = sorted(open_, key=lambda e: -liked[e])[: router.top_k]
        total = sum(score[e] for e in best) if router.normalize else 1.0
        result.append({e: score[e] / total * router.scale for e in best})
    return result


@pytest.mark.parametrize(
    ("groups", "top_groups", "top_k", "normalize"),
    [(1, 1, 3, True), (4, 2, 2, True), (4, 1, 2, False), (2, 2, 5, False), (2, 1, 4, True)],
)
def test_grouped_router_asks_the_best_of_the_best_groups(
    groups: int, top_groups: int, top_k: int, normalize: bool
) -> None:
    router = GroupedRouter(PROJECT, BIAS, groups, top_groups, top_k, normalize, scale=1.5)
    weight, expert = router(X)
    for row, expected in enumerate(one_by_one(router, X)):
        found = dict(zip(expert[row].tolist(), weight[row].tolist(), strict=True))
        assert found == pytest.approx(expected, abs=1e-12)
