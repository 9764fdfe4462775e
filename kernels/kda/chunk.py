"""Kimi delta attention over one sequence, chunk by chunk, in torch on any device.

The WY form of the gated delta rule with a decay for each channel: Kimi Linear (arXiv 2510.26692),
section 3. How the decayed products are taken without an overflow is told in README.md.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.kernels.checks import KernelError
from slotscope.kernels.chunks import cut, follow_delta, joined
from slotscope.kernels.recurrence import accumulator, per_value_head


def kda_chunk(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    initial: Tensor,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """Run one sequence from `initial`, and keep the state at every chunk's end.

    Args:
        q: [T, HK, K], T >= 1, as in `kda_step`; so are the other inputs.
        k: [T, HK, K].
        v: [T, HV, V].
        g: [T, HV, K].
        beta: [T, HV].
        initial: [HV, K, V]; read only. Sums are taken in its dtype, at least float32.
        chunk: tokens between two states, a power of two.
    Returns:
        o: [T, HV, V] in v's dtype.
        states: [ceil(T / chunk), HV, K, V] in initial's dtype; states[i] is the state after
            min((i + 1) * chunk, T) tokens, so the last one is the final state.
    """
    if chunk < 1 or chunk & (chunk - 1):
        raise KernelError(
            f"A chunk of {chunk} tokens was asked for, but its products are taken by halves of"
            " halves, down to single tokens. Give a power of two."
        )
    tokens, heads, _ = v.shape
    size = min(chunk, 1 << (tokens - 1).bit_length())
    dtype = accumulator(initial)
    q, k = per_value_head(q, heads), per_value_head(k, heads)
    b_q, b_k, b_v, b_g = (cut(x, size, dtype) for x in (q, k, v, g))  # [chunks, HV, size, K or V]
    b_beta = cut(beta.unsqueeze(-1), size, dtype)  # [chunks, HV, size, 1]

    fade = b_g.cumsum(-2)  # log of each channel's decay from the chunk's start through each token
    decay, last = fade.exp(), fade[:, :, -1:]
    strong = b_k * b_beta
    products = decayed_products(torch.stack((strong, b_q)), b_k, fade)
    system, attention = products.unbind()  # the solver takes the system's diagonal for ones
    known = torch.cat((b_v * b_beta, strong * decay), -1)
    solved = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)

    kept = b_k.mul_((last - fade).exp_()).mT
    query = b_q.mul_(decay)
    o, states = follow_delta(solved, query, attention, kept, last.exp().mT, initial.to(dtype))
    return joined(o, tokens).to(v.dtype), states.to(initial.dtype)


def decayed_products(x: Tensor, k: Tensor, fade: Tensor) -> Tensor:
    """Products of all pairs of tokens j <= i of a chunk, the earlier one faded to the later.

    result[..., i, j] = sum over K of x[..., i, :] exp(fade[..., i, :] - fade[..., j, :])
    k[..., j, :], and 0 where j > i.

    Args:
        x: [..., C, K], C a power of two.
        k: [..., C, K].
        fade: [..., C, K], which doesn't grow along C.
    """
    size = k.shape[-2]
    result = x.new_zeros((*x.shape[:-1], size))
    result.diagonal(dim1=-2, dim2=-1).copy_((x * k).sum(-1))
    half = size // 2
    while half:
        # Both factors fade towards the last token of the pair's first half, so neither grows.
        x_half, k_half, fade_half = (y.unflatten(-2, (-1, 2, half)) for y in (x, k, fade))
        middle = fade_half[..., 0, -1:, :]
        late = x_half[..., 1, :, :] * (fade_half[..., 1, :, :] - middle).exp()
        early = k_half[..., 0, :, :] * (middle - fade_half[..., 0, :, :]).exp()
        blocks = result.unflatten(-1, (-1, 2, half)).unflatten(-4, (-1, 2, half))
        # [..., blocks, 2, half, blocks, 2, half]: later half's rows, earlier half's columns
        pairs = blocks[..., :, 1, :, :, 0, :].diagonal(dim1=-4, dim2=-2)
        pairs.copy_((late @ early.mT).movedim(-3, -1))
        half //= 2
    return result
