"""The gated delta rule over one sequence, chunk by chunk, in torch on any device.

The WY form of Yang et al., Gated Delta Networks (arXiv 2412.06464), section 3.3: inside a chunk
the corrections of all tokens solve one triangular system, so only whole chunks follow each other.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .reference import accumulator, per_value_head


def gdn_chunk(
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
        q: [T, HK, K], T >= 1, as in `gdn_step`; so are the other inputs.
        k: [T, HK, K].
        v: [T, HV, V].
        g: [T, HV].
        beta: [T, HV].
        initial: [HV, K, V]; read only. Sums are taken in its dtype, at least float32.
        chunk: tokens between two states.
    Returns:
        o: [T, HV, V] in v's dtype.
        states: [ceil(T / chunk), HV, K, V] in initial's dtype; states[i] is the state after
            min((i + 1) * chunk, T) tokens, so the last one is the final state.
    """
    tokens, heads, _ = v.shape
    size = min(chunk, tokens)
    dtype = accumulator(initial)
    q, k = per_value_head(q, heads), per_value_head(k, heads)
    q, k, v_ = (_cut(x.to(dtype), size) for x in (q, k, v))  # [chunks, HV, size, K or V]
    g, beta = (_cut(x.to(dtype).unsqueeze(-1), size) for x in (g, beta))  # [chunks, HV, size, 1]

    fade = g.cumsum(-2)  # log of the decay from the chunk's start through each token
    # The decay from token j to token i. Above the diagonal it would grow, and overflow.
    between = (fade - fade.mT).tril().exp().tril()
    strong = k * beta
    system = (strong @ k.mT) * between  # its diagonal isn't read: the solver takes it for ones
    known = torch.cat((v_ * beta, strong * fade.exp()), -1)
    solved = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)
    writes, erases = solved[..., : v.shape[-1]], solved[..., v.shape[-1] :]

    attention = (q @ k.mT) * between
    reads = torch.cat((erases, q * fade.exp()), -2)  # both meet the chunk's first state
    last = fade[:, :, -1:]
    kept = (k * (last - fade).exp()).mT
    o, states = _scan(reads, writes, attention, kept, last.exp(), initial.to(dtype))
    o = o.transpose(1, 2).flatten(0, 1)[:tokens]
    return o.to(v.dtype), states.to(initial.dtype)


def _cut(x: Tensor, size: int) -> Tensor:
    """[T, H, F] as [chunks, H, size, F]; zeros fill the last chunk, and they move no state."""
    x = functional.pad(x, (0, 0, 0, 0, 0, -x.shape[0] % size))
    return x.view(-1, size, *x.shape[1:]).transpose(1, 2).contiguous()


def _scan(
    reads: Tensor, writes: Tensor, attention: Tensor, kept: Tensor, decay: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Follow the chunks; returns outputs [chunks, HV, size, V] and the state after each chunk."""
    size = writes.shape[2]
    o = torch.empty_like(writes)
    states = state.new_empty((len(writes), *state.shape))
    for i in range(len(writes)):
        read = reads[i] @ state
        written = writes[i] - read[:, :size]
        torch.baddbmm(read[:, size:], attention[i], written, out=o[i])
        state = torch.baddbmm(state * decay[i], kept[i], written, out=states[i])
    return o, states
