"""Gates, norms and layouts against the formulas, written out."""

from __future__ import annotations

import torch
from sgl_kernel import gates
from torch import Tensor

T, H, D = 3, 2, 4


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def gemma(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * (1 + weight)


def test_decay_and_strength() -> None:
    A_log, a, b, dt_bias = draw(H), draw(T, H), draw(T, H, seed=1), draw(H, seed=2)
    g, beta = gates.fused_gdn_gating_cpu(A_log, a, b, dt_bias)
    torch.testing.assert_close(g[0], -A_log.exp() * (1 + (a + dt_bias).exp()).log())
    torch.testing.assert_close(beta[0], 1 / (1 + (-b).exp()))


def test_norms_of_query_and_key_take_each_head_alone() -> None:
    q, k, q_weight, k_weight = draw(T, H * D), draw(T, D), draw(D), draw(D, seed=1)
    normed_q, normed_k = gates.fused_qk_gemma_rmsnorm_cpu(q, k, q_weight, k_weight, 1e-6, D)
    torch.testing.assert_close(normed_q.view(T, H, D), gemma(q.view(T, H, D), q_weight))
    torch.testing.assert_close(normed_k, gemma(k, k_weight))


def test_a_gate_is_parted_from_its_query_head_by_head() -> None:
    q, gate, k, weight = draw(T, H, D), draw(T, H, D, seed=1), draw(T, D), draw(D)
    both = torch.cat((q, gate), -1).flatten(1)
    normed_q, _, parted = gates.fused_qk_gemma_rmsnorm_with_gate_cpu(
        both, k, weight, weight, 1e-6, D, H
    )
    torch.testing.assert_close(normed_q.view(T, H, D), gemma(q, weight))
    assert torch.equal(parted.view(T, H * D), gate.flatten(1))  # a view, as SGLang takes it


def test_the_projection_splits_into_its_parts() -> None:
    qkv, z, b, a = draw(T, 2 * H * D + 4 * D), draw(T, 4 * D), draw(T, 4), draw(T, 4, seed=1)
    parts = gates.fused_qkvzba_split_reshape_cat_contiguous_cpu(
        torch.cat((qkv, z), -1), torch.cat((b, a), -1), H, 4, D, D
    )
    for part, want in zip(parts, (qkv, z.view(T, 4, D), b, a), strict=True):
        assert torch.equal(part, want)
        assert part.is_contiguous()


def test_gated_norm_and_gated_product() -> None:
    x, gate, weight = draw(T, D), draw(T, D, seed=1), draw(D)
    want = gemma(x, weight - 1) * gate * torch.sigmoid(gate)
    torch.testing.assert_close(gates.rms_norm_times_silu(x, gate, weight, 1e-6), want)
    product = x.clone()
    gates.fused_sigmoid_mul_cpu(product, gate)
    torch.testing.assert_close(product, x * torch.sigmoid(gate))
