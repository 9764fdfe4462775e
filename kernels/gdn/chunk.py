"""The gated delta rule over one sequence, chunk by chunk, in torch on any device.

The WY form of Yang et al., Gated Delta Networks (arXiv 2412.06464), section 3.3: inside a chunk
the corrections of all tokens solve one triangular system, so only whole chunks follow each other.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.kernels.chunks import cut, follow_delta, joined
from slotscope.kernels.recurrence import accumulator, per_value_head


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
    (tokens, heads, width), size = v.shape, min(chunk, len(v))
    dtype = accumulator(initial)
    q, k = per_value_head(q, heads), per_value_head(k, heads)
    b_q, b_k, b_v = (cut(x, size, dtype) for x in (q, k, v))  # [chunks, HV, size, K or V]
    b_g, b_beta = (cut(x.unsqueeze(-1), size, dtype) for x in (g, beta))  # [chunks, HV, size, 1]

    fade = b_g.cumsum(-2)  # log of the decay from the chunk's start through each token
    decay, last = fade.exp(), fade[:, :, -1:]
    # The decay from token j to token i <= j would grow, and overflow, if it weren't held at one.
    between = (fade - fade.mT).clamp_(max=0).exp_().tril_()
    strong = b_k * b_beta
    system = (strong @ b_k.mT).mul_(between)  # the solver takes its diagonal for ones
    known = b_v.new_empty((*b_v.shape[:-1], width + k.shape[-1]))
    torch.mul(b_v, b_beta, out=known[..., :width])
    torch.mul(strong, decay, out=known[..., width:])
    solved = torch.linalg.solve_triangular(system, known, upper=False, unitriangular=True)

    attention = (b_q @ b_k.mT).mul_(between)
    kept = b_k.mul_((last - fade).exp_()).mT
    query = b_q.mul_(decay)
    o, states = follow_delta(solved, query, attention, kept, last.exp(), initial.to(dtype))
    return joined(o, tokens).to(v.dtype), states.to(initial.dtype)
