"""Norms against their formulas."""

from __future__ import annotations

import torch

from slotscope.engine.layers.norm import GatedNorm, GroupedGatedNorm, Norm

NEW = torch.Generator().manual_seed(0)
X = torch.randn(7, 3, 10, generator=NEW, dtype=torch.float64)
GATE = torch.randn(7, 3, 10, generator=NEW, dtype=torch.float64)
WEIGHT = torch.randn(10, generator=NEW, dtype=torch.float64)


def test_norm_is_centered_on_one() -> None:
    expected = X / (X.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt() * (1 + WEIGHT)
    torch.testing.assert_close(Norm.centered(WEIGHT, 1e-3)(X), expected, rtol=0, atol=1e-14)


def test_norm_takes_a_scale_for_each_head() -> None:
    per_head = torch.stack((WEIGHT, WEIGHT + 1, WEIGHT + 2))
    together = Norm.centered(per_head, 1e-6)(X)
    for head in range(3):
        alone = Norm.centered(per_head[head], 1e-6)(X[:, head])
        assert torch.equal(together[:, head], alone)


def test_gated_norm_gates_after_it_norms() -> None:
    expected = X / (X.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt() * WEIGHT
    expected = expected * GATE * GATE.sigmoid()
    gated = GatedNorm(WEIGHT, 1e-3)(X, GATE, torch.float64)
    torch.testing.assert_close(gated, expected, rtol=0, atol=1e-14)


def test_gated_norm_takes_another_activation() -> None:
    expected = X / (X.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt() * WEIGHT * GATE.sigmoid()
    gated = GatedNorm(WEIGHT, 1e-3, torch.sigmoid)(X, GATE, torch.float64)
    torch.testing.assert_close(gated, expected, rtol=0, atol=1e-14)


def test_grouped_norm_gates_first_and_takes_each_group_alone() -> None:
    gated = X * GATE * GATE.sigmoid()
    halves = [
        half / (half.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt() for half in gated.split(5, -1)
    ]
    expected = torch.cat(halves, -1) * WEIGHT
    normed = GroupedGatedNorm(WEIGHT.view(2, 5), 1e-3)(X, GATE, torch.float64)
    torch.testing.assert_close(normed, expected, rtol=0, atol=1e-14)


def test_bfloat16_is_normed_in_float32_and_rounded_once() -> None:
    low = X.bfloat16()
    wide = Norm.centered(WEIGHT.float(), 1e-6)(low.float())
    assert torch.equal(Norm.centered(WEIGHT.float(), 1e-6)(low), wide.bfloat16())
