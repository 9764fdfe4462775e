"""The gated delta rule token by token, in torch, for all rows at once.

Arguments are described in `slotscope.kernels.gdn`.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gdn_step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.gdn.gdn_step`."""
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        o = torch.zeros_like(v, memory_format=torch.contiguous_format)
        q, k, v, g, beta = (x[live] for x in (q, k, v, g, beta))
        o[live] = gdn_step(q, k, v, g, beta, state, slots[live])
        return o
    current = state.index_select(0, slots).to(accumulator(state))
    o = advance(q, k, v, g, beta, current)
    state.index_copy_(0, slots, current.to(state.dtype))
    return o.to(v.dtype)


def gdn_verify(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
) -> Tensor:
    """See `slotscope.kernels.gdn.gdn_verify`."""
    o = torch.zeros_like(v, memory_format=torch.contiguous_format)
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        q, k, v, g, beta = (x[live] for x in (q, k, v, g, beta))
        o[live] = gdn_verify(q, k, v, g, beta, state, slots[live], steps, rows[live])
        return o
    current = state.index_select(0, slots).to(accumulator(state))
    for d in range(v.shape[1]):
        o[:, d] = advance(q[:, d], k[:, d], v[:, d], g[:, d], beta[:, d], current)
        steps[rows, d] = current.to(steps.dtype)
    return o


def advance(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, current: Tensor) -> Tensor:
    """Move states [N, HV, K, V] by one token, in place.

    S = exp(g) S;  S = S + k (beta (v - k S));  o = q S

    Returns:
        [N, HV, V] in the states' dtype.
    """
    heads = v.shape[-2]
    q, k = per_value_head(q, heads).to(current), per_value_head(k, heads).to(current)
    current *= g.to(current).exp()[..., None, None]
    error = v.to(current) - (k.unsqueeze(-2) @ current).squeeze(-2)
    error *= beta.to(current).unsqueeze(-1)
    current.addcmul_(k.unsqueeze(-1), error.unsqueeze(-2))
    return (q.unsqueeze(-2) @ current).squeeze(-2)


def per_value_head(x: Tensor, heads: int) -> Tensor:
    """[..., HK, K] repeated to [..., HV, K]: value head h reads key head h // (HV // HK)."""
    return x.repeat_interleave(heads // x.shape[-2], -2) if heads != x.shape[-2] else x


def accumulator(state: Tensor) -> torch.dtype:
    """The dtype that sums are taken in: the state's, but at least float32."""
    return torch.promote_types(state.dtype, torch.float32)
