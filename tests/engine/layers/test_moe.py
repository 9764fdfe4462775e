"""Experts, grouped, against a loop over tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import silu

from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import Experts, Moe, SoftmaxRouter

HIDDEN, INNER, EXPERTS = 12, 5, 6


def moe(top_k: int, normalize: bool) -> Moe:
    new = torch.Generator().manual_seed(0)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=new, dtype=torch.float64)

    return Moe(
        router=SoftmaxRouter(random(EXPERTS, HIDDEN), top_k, normalize),
        experts=Experts(
            random(EXPERTS, HIDDEN, 2 * INNER).unbind(), random(EXPERTS, INNER, HIDDEN).unbind()
        ),
        shared=Mlp(random(2 * INNER, HIDDEN), random(HIDDEN, INNER)),
        shared_gate=random(1, HIDDEN),
    )


def tokens(count: int) -> Tensor:
    return torch.randn(
        count, HIDDEN, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )


def one_by_one(block: Moe, x: Tensor) -> Tensor:
    """Each token asks its experts on its own."""
    router, experts, gate = block.router, block.experts, block.shared_gate
    assert isinstance(router, SoftmaxRouter)
    assert gate is not None
    result = []
    for token in x:
        share = (router.project @ token).softmax(0)
        best = sorted(range(EXPERTS), key=lambda e: -share[e])[: router.top_k]
        total = sum(share[e] for e in best) if router.normalize else 1.0
        y = torch.sigmoid(gate @ token) * block.shared(token[None])[0]
        for e in best:
            inner, up = (token @ experts.gate_up[e]).chunk(2)
            y = y + share[e] / total * ((silu(inner) * up) @ experts.down[e])
        result.append(y)
    return torch.stack(result)


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize(("top_k", "normalize"), [(1, True), (2, False), (3, True), (6, True)])
def test_grouped_experts_say_what_single_ones_say(count: int, top_k: int, normalize: bool) -> None:
    block, x = moe(top_k, normalize), tokens(count)
    torch.testing.assert_close(block(x), one_by_one(block, x), rtol=0, atol=1e-12)


def test_an_expert_that_nobody_asks_is_not_read() -> None:
    block, x = moe(1, True), tokens(2)
    asked = block.router(x)[1].flatten().tolist()
    expected = block(x)
    for expert in set(range(EXPERTS)) - set(asked):
        block.experts.gate_up[expert].fill_(float("nan"))
        block.experts.down[expert].fill_(float("nan"))
    assert torch.equal(block(x), expected)
