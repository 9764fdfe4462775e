"""The layers of Qwen3-Next for training; parameters are named as transformers names them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import Sizes
from .gdn import gated_delta_rule


class Norm(nn.Module):
    """RMS norm with a scale around one: x / rms(x) * (1 + w)."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (scaled * (1 + self.weight)).to(x.dtype)


class GatedNorm(nn.Module):
    """RMS norm of a GDN head's output, times silu of the gate."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        scaled = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return scaled * self.weight * F.silu(gate.float())


class LinearAttention(nn.Module):
    """Gated DeltaNet: [B, T, D] to [B, T, D], from an empty state."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        heads, channels = sizes.linear_num_value_heads, 2 * sizes.key_dim + sizes.value_dim
        kernel = sizes.linear_conv_kernel_dim
        self.conv1d = nn.Conv1d(
            channels, channels, kernel, groups=channels, padding=kernel - 1, bias=False
        )
        self.in_proj_qkvz = nn.Linear(
            sizes.hidden_size, 2 * (sizes.key_dim + sizes.value_dim), bias=False
        )
        self.in_proj_ba = nn.Linear(sizes.hidden_size, 2 * heads, bias=False)
        # Steps of 0.001 to 0.1 let a head remember 10 to 1000 tokens from the start (Mamba's rule).
        step = torch.exp(torch.empty(heads).uniform_(-6.9, -2.3))
        self.dt_bias = nn.Parameter(step + torch.log(-torch.expm1(-step)))
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.norm = GatedNorm(sizes.linear_value_head_dim, sizes.rms_norm_eps)
        self.out_proj = nn.Linear(sizes.value_dim, sizes.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        sizes = self.sizes
        groups, shared = sizes.linear_num_key_heads, sizes.value_dim // sizes.linear_num_key_heads
        # HF stores q, k, v, z (and b, a) of one key head next to each other.
        qkvz = self.in_proj_qkvz(x).unflatten(-1, (groups, -1))
        width = sizes.linear_key_head_dim
        q, k, v, z = qkvz.split([width, width, shared, shared], dim=-1)
        b, a = self.in_proj_ba(x).unflatten(-1, (groups, -1)).chunk(2, dim=-1)
        mixed = torch.cat([part.flatten(2) for part in (q, k, v)], dim=-1)
        mixed = F.silu(self._convolve(mixed))
        q, k, v = mixed.split([sizes.key_dim, sizes.key_dim, sizes.value_dim], dim=-1)
        out = self._recur(q, k, v, b.flatten(2), a.flatten(2))
        out = self.norm(out, z.reshape(out.shape))
        return self.out_proj(out.flatten(2).to(x.dtype))  # type: ignore[no-any-return]

    def _convolve(self, x: Tensor) -> Tensor:
        """Causal depthwise convolution of [B, T, C], as shifts: cuDNN's is slow backwards."""
        taps = self.conv1d.weight[:, 0].to(x.dtype)  # [C, kernel]
        padded, tokens = F.pad(x, (0, 0, taps.shape[1] - 1, 0)), x.shape[1]
        return sum(
            (padded[:, i : i + tokens] * taps[:, i] for i in range(1, taps.shape[1])),
            padded[:, :tokens] * taps[:, 0],
        )

    def _recur(self, q: Tensor, k: Tensor, v: Tensor, b: Tensor, a: Tensor) -> Tensor:
        """[B, T, key or value dim] and gates [B, T, H] to [B, T, H, V], float32."""
        sizes = self.sizes
        repeat = sizes.linear_num_value_heads // sizes.linear_num_key_heads
        q, k = (
            _unit(x.float().unflatten(-1, (-1, sizes.linear_key_head_dim)))
            .repeat_interleave(repeat, dim=2)
            .transpose(1, 2)
            for x in (q, k)
        )
        v = v.float().unflatten(-1, (-1, sizes.linear_value_head_dim)).transpose(1, 2)
        g = -self.A_log.float().exp() * F.softplus(a.float() + self.dt_bias)
        with torch.autocast(q.device.type, enabled=False):
            out = gated_delta_rule(
                q * sizes.linear_key_head_dim**-0.5,
                k,
                v,
                g.transpose(1, 2),
                b.float().sigmoid().transpose(1, 2),
            )
        return out.transpose(1, 2)


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


class Attention(nn.Module):
    """Gated attention with normed, partly rotated queries and keys."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        width, size = sizes.head_dim, sizes.hidden_size
        self.q_proj = nn.Linear(size, 2 * sizes.num_attention_heads * width, bias=False)
        self.k_proj = nn.Linear(size, sizes.num_key_value_heads * width, bias=False)
        self.v_proj = nn.Linear(size, sizes.num_key_value_heads * width, bias=False)
        self.o_proj = nn.Linear(sizes.num_attention_heads * width, size, bias=False)
        self.q_norm = Norm(width, sizes.rms_norm_eps)
        self.k_norm = Norm(width, sizes.rms_norm_eps)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """[B, T, D] to q, k, v [B, H, T, head_dim] and the gate [B, T, H * head_dim]."""
        width = self.sizes.head_dim
        q, gate = self.q_proj(x).unflatten(-1, (-1, 2 * width)).chunk(2, dim=-1)
        k = self.k_proj(x).unflatten(-1, (-1, width))
        v = self.v_proj(x).unflatten(-1, (-1, width)).transpose(1, 2)
        q, k = self.q_norm(q).transpose(1, 2), self.k_norm(k).transpose(1, 2)
        q, k = (_rotate(part, self.sizes).to(v.dtype) for part in (q, k))
        repeat = self.sizes.num_attention_heads // self.sizes.num_key_value_heads
        k, v = (part.repeat_interleave(repeat, dim=1) for part in (k, v))
        return q, k, v, gate.flatten(2)

    def close(self, mixed: Tensor, gate: Tensor) -> Tensor:
        """Heads [B, H, T, head_dim] and gate to [B, T, D]."""
        mixed = mixed.transpose(1, 2).flatten(2) * gate.sigmoid()
        return self.o_proj(mixed)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, gate = self.project(x)
        return self.close(F.scaled_dot_product_attention(q, k, v, is_causal=True), gate)


def _rotate(x: Tensor, sizes: Sizes) -> Tensor:
    """Rotary embedding of the first part of each head at positions 0 .. T-1; x is [B, H, T, W]."""
    width = int(sizes.head_dim * sizes.partial_rotary_factor)
    ladder = torch.arange(0, width, 2, device=x.device, dtype=torch.float32) / width
    places = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)
    angles = places[:, None] * sizes.rope_theta**-ladder  # [T, W / 2]
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = x.split([width // 2, width // 2, x.shape[-1] - width], dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


class Feed(nn.Module):
    """A SwiGLU feed-forward layer."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(size, inner, bias=False)
        self.up_proj = nn.Linear(size, inner, bias=False)
        self.down_proj = nn.Linear(inner, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class Experts(nn.Module):
    """All experts' weights; each expert sees every token, as a GPU likes it when they are few."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        count, size, inner = sizes.num_experts, sizes.hidden_size, sizes.moe_intermediate_size
        self.gate_up_proj = nn.Parameter(torch.empty(count, 2 * inner, size))
        self.down_proj = nn.Parameter(torch.empty(count, size, inner))

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """[N, D] and the weight of each expert for each token [N, E] to [N, D]."""
        gate, up = torch.matmul(x.unsqueeze(0), self.gate_up_proj.mT).chunk(2, dim=-1)
        inner = F.silu(gate) * up * weights.T.unsqueeze(-1).to(gate.dtype)  # [E, N, I]
        return torch.matmul(inner, self.down_proj.mT).sum(0)


class Mixture(nn.Module):
    """Top-k experts beside a gated shared expert. `balance` is the last forward's balance loss."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.top = sizes.num_experts_per_tok
        self.gate = nn.Linear(sizes.hidden_size, sizes.num_experts, bias=False)
        self.experts = Experts(sizes)
        self.shared_expert = Feed(sizes.hidden_size, sizes.shared_expert_intermediate_size)
        self.shared_expert_gate = nn.Linear(sizes.hidden_size, 1, bias=False)
        self.balance = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        likely = self.gate(flat).float().softmax(-1)
        chosen = likely.topk(self.top, dim=-1).indices
        mask = torch.zeros_like(likely).scatter(-1, chosen, 1.0)
        weights = likely * mask
        weights = weights / weights.sum(-1, keepdim=True)
        # The Switch Transformer's balance loss: share of tokens times mean probability, summed.
        self.balance = likely.shape[-1] * (mask.mean(0) * likely.mean(0)).sum() / self.top
        shared = self.shared_expert_gate(flat).sigmoid() * self.shared_expert(flat)
        return (self.experts(flat, weights) + shared).view(x.shape)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """One decoder layer: a token mixer, then experts."""

    def __init__(self, sizes: Sizes, *, attention: bool) -> None:
        super().__init__()
        if attention:
            self.self_attn = Attention(sizes)
        else:
            self.linear_attn = LinearAttention(sizes)
        self.mixer = "self_attn" if attention else "linear_attn"
        self.mlp = Mixture(sizes)
        self.input_layernorm = Norm(sizes.hidden_size, sizes.rms_norm_eps)
        self.post_attention_layernorm = Norm(sizes.hidden_size, sizes.rms_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.feed(x + getattr(self, self.mixer)(self.input_layernorm(x)))

    def feed(self, x: Tensor) -> Tensor:
        """The second half of the layer."""
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]
