"""Gates, norms and projections' layouts around the recurrence and the attention.

Letters: T tokens, H key heads, HV value heads, D head size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def log_decay(A_log: Tensor, a: Tensor, dt_bias: Tensor) -> Tensor:
    """-exp(A_log) * softplus(a + dt_bias): [T, HV] fp32, natural log of the decay, <= 0.

    The source is Mamba-2's discretisation, as gated DeltaNet uses it (arXiv:2412.06464).
    """
    return -A_log.float().exp() * F.softplus(a.float() + dt_bias.float())


def fused_gdn_gating_cpu(
    A_log: Tensor, a: Tensor, b: Tensor, dt_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Decay and write strength of each token: two of [1, T, HV] fp32."""
    return log_decay(A_log, a, dt_bias)[None], torch.sigmoid(b.float())[None]


def fused_sigmoid_mul_cpu(x: Tensor, gate: Tensor, inplace: bool = True) -> Tensor:
    """x * sigmoid(gate), in x's memory unless told otherwise; newer releases never tell."""
    opened = torch.sigmoid(gate.reshape(x.shape).float()).to(x.dtype)
    return x.mul_(opened) if inplace else x * opened


def fused_qk_gemma_rmsnorm_cpu(
    q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, eps: float, head_dim: int
) -> tuple[Tensor, Tensor]:
    """RMS norm over each head, with Gemma's `1 + weight`; shapes stay as they came."""
    return (
        _gemma_norm(q.reshape(-1, head_dim), q_weight, eps).view(q.shape),
        _gemma_norm(k.reshape(-1, head_dim), k_weight, eps).view(k.shape),
    )


def fused_qk_gemma_rmsnorm_with_gate_cpu(
    q_gate: Tensor,
    k: Tensor,
    q_weight: Tensor,
    k_weight: Tensor,
    eps: float,
    head_dim: int,
    num_head: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """q_gate [T, H * 2 * D] holds query and gate, head by head -> norms and gate, [T * H, D]."""
    q, gate = q_gate.reshape(-1, num_head, 2 * head_dim).chunk(2, dim=-1)
    return (
        _gemma_norm(q.reshape(-1, head_dim), q_weight, eps),
        _gemma_norm(k.reshape(-1, head_dim), k_weight, eps),
        gate.reshape(-1, head_dim).contiguous(),  # SGLang views it as rows of tokens
    )


def fused_qkvzba_split_reshape_cat_contiguous_cpu(
    mixed_qkvz: Tensor,
    mixed_ba: Tensor,
    num_heads_qk: int,
    num_heads_v: int,
    head_qk: int,
    head_v: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Split [T, q k v z] and [T, b a] into qkv [T, ..], z [T, HV, D], b and a [T, HV]."""
    values = num_heads_v * head_v
    qkv, z = mixed_qkvz.split((2 * num_heads_qk * head_qk + values, values), dim=-1)
    b, a = mixed_ba.chunk(2, dim=-1)
    z = z.reshape(-1, num_heads_v, head_v)
    return qkv.contiguous(), z.contiguous(), b.contiguous(), a.contiguous()


def rms_norm_times_silu(x: Tensor, gate: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """RMS norm of x [.., D] in fp32, times weight and silu(gate), in x's dtype."""
    normed = F.rms_norm(x.float(), x.shape[-1:], eps=eps)
    if weight is not None:
        normed = normed * weight.float()
    return (normed * F.silu(gate.float())).to(x.dtype)


def _gemma_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x.float(), x.shape[-1:], 1.0 + weight.float(), eps).to(x.dtype)
