"""Mamba2's recurrence: one token, a chain or tree of draft tokens, a chunk.

Sizes, in the words of linear attention: N rows, D draft tokens, T tokens, HK groups of heads, HV
heads (a multiple of HK; head h reads group h // (HV // HK)), K the state size, V the head size.
README.md has the maths.
"""

from __future__ import annotations

from torch import Tensor

from . import reference
from .chunk import mamba2_chunk

__all__ = ["mamba2_chunk", "mamba2_step", "mamba2_verify"]


def mamba2_step(
    c: Tensor, b: Tensor, x: Tensor, g: Tensor, dt: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """Advance each row's state by one token, in place.

    Args:
        c: [N, HK, K], what reads the state.
        b: [N, HK, K], where in the state x is written.
        x: [N, HV, V].
        g: [N, HV] natural log of the decay, dt times A, <= 0.
        dt: [N, HV] time step, > 0.
        state: [slots, HV, K, V]; only rows named by `slots` change. Sums are taken in its dtype,
            or in float32 where that is narrower.
        slots: [N] int64; 0 is a pad row. No other slot twice.
    Returns:
        [N, HV, V] in x's dtype, zero for pad rows, without the skip D x.
    """
    if state.is_cuda:
        from . import step

        return step.mamba2_step(c, b, x, g, dt, state, slots)
    return reference.mamba2_step(c, b, x, g, dt, state, slots)


def mamba2_verify(
    c: Tensor,
    b: Tensor,
    x: Tensor,
    g: Tensor,
    dt: Tensor,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """Run each row's draft tokens from its state, and keep the state after every token.

    Args:
        c: [N, D, HK, K], as in `mamba2_step`; so are the other inputs.
        b: [N, D, HK, K].
        x: [N, D, HV, V].
        g: [N, D, HV].
        dt: [N, D, HV].
        state: [slots, HV, K, V]; read only.
        slots: [N] int64; 0 is a pad row, whose scratch row isn't touched. May repeat.
        steps: [scratch rows, >= D, HV, K, V]; `steps[rows[i], d]` = state after token d.
        rows: [N] int64 scratch row of each row, each once among the rows that are no padding.
        parents: [N, D] int64, for trees: the token that each follows, which stands before it;
            -1 = the row's state. None: a chain, each token follows the one before it. In a tree
            a token starts from what its parent stored, in the dtype of `steps`.
    Returns:
        [N, D, HV, V] in x's dtype, zero for pad rows.
    """
    if state.is_cuda:
        from . import verify

        return verify.mamba2_verify(c, b, x, g, dt, state, slots, steps, rows, parents)
    return reference.mamba2_verify(c, b, x, g, dt, state, slots, steps, rows, parents)
