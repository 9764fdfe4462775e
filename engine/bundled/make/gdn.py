"""The gated delta rule over a whole sequence, in chunks, with gradients."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 64


def gated_delta_rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """Outputs of the recurrence from a zero state, all float32.

    S_t = exp(g_t) S_{t-1} + beta_t k_t (v_t - k_t' exp(g_t) S_{t-1})',  o_t = q_t' S_t.
    Within a chunk the writes are the solution of a unit lower triangular system (the WY form of
    Yang et al., *Gated Delta Networks*, 2024); the state goes from chunk to chunk.

    Args:
        q, k:    [B, H, T, K], k of unit length, q scaled.
        v:       [B, H, T, V].
        g, beta: [B, H, T], log decay (<= 0) and write strength.
    Returns:
        [B, H, T, V]. T must be a multiple of 64.
    """
    batch, heads, tokens, _ = q.shape
    if tokens % CHUNK:
        raise ValueError(f"{tokens} tokens are no multiple of the chunk, {CHUNK}: pad the sequence")
    q, k, v = (x.unflatten(2, (-1, CHUNK)) for x in (q, k, v))  # [B, H, N, C, *]
    g, beta = g.unflatten(2, (-1, CHUNK)).cumsum(-1), beta.unflatten(2, (-1, CHUNK)).unsqueeze(-1)
    later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
    decay = (g.unsqueeze(-1) - g.unsqueeze(-2)).masked_fill(later, float("-inf")).exp()
    system = (k * beta) @ k.mT * decay
    within = q @ k.mT * decay
    writes = torch.cat([v * beta, k * beta * g.exp().unsqueeze(-1)], dim=-1)
    solved = torch.linalg.solve_triangular(system, writes, upper=False, unitriangular=True)
    fresh, reading = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    q = q * g.exp().unsqueeze(-1)
    k = k * (g[..., -1:] - g).exp().unsqueeze(-1)
    kept = g[..., -1].exp()[..., None, None]

    state = q.new_zeros(batch, heads, k.shape[-1], v.shape[-1])
    out = []
    for i in range(q.shape[2]):
        written = fresh[:, :, i] - reading[:, :, i] @ state
        out.append(q[:, :, i] @ state + within[:, :, i] @ written)
        state = state * kept[:, :, i] + k[:, :, i].mT @ written
    return torch.stack(out, dim=2).flatten(2, 3)
