"""Kimi delta attention, as in Kimi-Linear: one token, a chain or tree of draft tokens, a chunk.

Sizes: N rows, D draft tokens, T tokens, HK key heads, HV value heads (a multiple of HK; value head
h reads key head h // (HV // HK)), K and V the head sizes. README.md has the maths.
"""

from __future__ import annotations

from torch import Tensor

from . import reference
from .chunk import kda_chunk

__all__ = ["kda_chunk", "kda_step", "kda_verify"]


def kda_step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """Advance each row's state by one token, in place.

    Args:
        q: [N, HK, K], unit length along K, then scaled by K ** -0.5.
        k: [N, HK, K], unit length along K.
        v: [N, HV, V].
        g: [N, HV, K] natural log of each channel's decay, <= 0.
        beta: [N, HV] write strength in (0, 1).
        state: [slots, HV, K, V]; only rows named by `slots` change. Sums are taken in its dtype,
            or in float32 where that is narrower.
        slots: [N] int64; 0 is a pad row. No other slot twice.
    Returns:
        [N, HV, V] in v's dtype, zero for pad rows.
    """
    if state.is_cuda:
        from . import step

        return step.kda_step(q, k, v, g, beta, state, slots)
    return reference.kda_step(q, k, v, g, beta, state, slots)


def kda_verify(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """Run each row's draft tokens from its state, and keep the state after every token.

    Args:
        q: [N, D, HK, K], as in `kda_step`; so are the other inputs.
        k: [N, D, HK, K].
        v: [N, D, HV, V].
        g: [N, D, HV, K].
        beta: [N, D, HV].
        state: [slots, HV, K, V]; read only.
        slots: [N] int64; 0 is a pad row, whose scratch row isn't touched. May repeat.
        steps: [scratch rows, >= D, HV, K, V]; `steps[rows[i], d]` = state after token d.
        rows: [N] int64 scratch row of each row, each once among the rows that are no padding.
        parents: [N, D] int64, for trees: the token that each follows, which stands before it;
            -1 = the row's state. None: a chain, each token follows the one before it. In a tree
            a token starts from what its parent stored, in the dtype of `steps`.
    Returns:
        [N, D, HV, V] in v's dtype, zero for pad rows.
    """
    if state.is_cuda:
        from . import verify

        return verify.kda_verify(q, k, v, g, beta, state, slots, steps, rows, parents)
    return reference.kda_verify(q, k, v, g, beta, state, slots, steps, rows, parents)
