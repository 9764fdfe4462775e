"""Mamba2's recurrence over one sequence, chunk by chunk, in torch on any device.

The block decomposition of Dao and Gu, *Transformers are SSMs* (arXiv 2405.21060), section 6.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.kernels.chunks import cut, joined
from slotscope.kernels.recurrence import accumulator, per_value_head


def mamba2_chunk(
    c: Tensor,
    b: Tensor,
    x: Tensor,
    g: Tensor,
    dt: Tensor,
    initial: Tensor,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """Run one sequence from `initial`, and keep the state at every chunk's end.

    Args:
        c: [T, HK, K], T >= 1, as in `mamba2_step`; so are the other inputs.
        b: [T, HK, K].
        x: [T, HV, V].
        g: [T, HV].
        dt: [T, HV].
        initial: [HV, K, V]; read only. Sums are taken in its dtype, at least float32.
        chunk: tokens between two states.
    Returns:
        o: [T, HV, V] in x's dtype.
        states: [ceil(T / chunk), HV, K, V] in initial's dtype; states[i] is the state after
            min((i + 1) * chunk, T) tokens, so the last one is the final state.
    """
    (tokens, heads, _), size = x.shape, min(chunk, len(x))
    dtype = accumulator(initial)
    # All value heads of a group read the same products, which are taken before they are repeated.
    b_c, b_b = (cut(y, size, dtype) for y in (c, b))  # [chunks, HK, size, K]
    products = b_c @ b_b.mT  # [chunks, HK, size, size]
    b_c, b_b, products = (_repeated(y, heads) for y in (b_c, b_b, products))
    written = cut(x, size, dtype) * cut(dt.unsqueeze(-1), size, dtype)  # [chunks, HV, size, V]

    fade = cut(g.unsqueeze(-1), size, dtype).cumsum(-2)  # [chunks, HV, size, 1]
    last = fade[:, :, -1:]
    # The decay from token j to token i <= j would grow, and overflow, if it weren't held at one.
    between = (fade - fade.mT).clamp_(max=0).exp_().tril_()
    o = (products * between) @ written
    added = (b_b * (last - fade).exp_()).mT @ written  # [chunks, HV, K, V]
    reads, decay = b_c * fade.exp(), last.exp()

    state = initial.to(dtype)
    states = state.new_empty((len(o), *state.shape))
    for i in range(len(o)):
        o[i].baddbmm_(reads[i], state)
        state = torch.addcmul(added[i], state, decay[i], out=states[i])
    return joined(o, tokens).to(x.dtype), states.to(initial.dtype)


def _repeated(x: Tensor, heads: int) -> Tensor:
    """[chunks, HK, size, F] to [chunks, HV, size, F]."""
    return per_value_head(x.transpose(1, 2), heads).transpose(1, 2)
