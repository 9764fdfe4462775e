"""What the references of all recurrences share: one token, a chain or a tree, for many rows.

A recurrence is its `advance`: it moves states [N, HV, K, V] by one token in place, fed with q and k
[N, HK, K], v [N, HV, V], and whatever gates it has, and returns what is read, [N, HV, V].
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""q, k, v and two gates, in the order that `advance` takes them."""

Advance = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""Inputs of one token, then the states that it moves."""


def step(advance: Advance, inputs: Inputs, state: Tensor, slots: Tensor) -> Tensor:
    """One token for each row [N, ...], in place; see any recurrence's `step`."""
    v = inputs[2]
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        o = torch.zeros_like(v, memory_format=torch.contiguous_format)
        o[live] = step(advance, _rows(inputs, live), state, slots[live])
        return o
    current = state.index_select(0, slots).to(accumulator(state))
    o = advance(*inputs, current)
    state.index_copy_(0, slots, current.to(state.dtype))
    return o.to(v.dtype)


def verify(
    advance: Advance,
    inputs: Inputs,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """A chain or tree of draft tokens for each row [N, D, ...]; see any recurrence's `verify`."""
    q, k, v, g, beta = inputs
    o = torch.zeros_like(v, memory_format=torch.contiguous_format)
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        tree = None if parents is None else parents[live]
        fed = _rows(inputs, live)
        o[live] = verify(advance, fed, state, slots[live], steps, rows[live], tree)
        return o
    initial = state.index_select(0, slots)
    current = initial.to(accumulator(state))
    for d in range(v.shape[1]):
        if parents is not None:
            current = followed(initial, steps, rows, parents[:, d]).to(current.dtype)
        o[:, d] = advance(q[:, d], k[:, d], v[:, d], g[:, d], beta[:, d], current)
        steps[rows, d] = current.to(steps.dtype)
    return o


def followed(initial: Tensor, steps: Tensor, rows: Tensor, parents: Tensor) -> Tensor:
    """The state that each row's next token of a tree starts from.

    Args:
        initial: [N, ...] states of the rows.
        steps: [scratch rows, D, ...] states after each token.
        rows: [N] int64 scratch rows.
        parents: [N] int64 token that is followed; -1 = the row's state.
    Returns:
        [N, ...] in initial's dtype, a copy.
    """
    root = (parents < 0).view(-1, *(1,) * (initial.ndim - 1))
    return torch.where(root, initial, steps[rows, parents.clamp(min=0)].to(initial.dtype))


def per_value_head(x: Tensor, heads: int) -> Tensor:
    """[..., HK, K] repeated to [..., HV, K]: value head h reads key head h // (HV // HK)."""
    return x.repeat_interleave(heads // x.shape[-2], -2) if heads != x.shape[-2] else x


def accumulator(state: Tensor) -> torch.dtype:
    """The dtype that sums are taken in: the state's, but at least float32."""
    return torch.promote_types(state.dtype, torch.float32)


def _rows(inputs: Inputs, live: Tensor) -> Inputs:
    q, k, v, g, beta = inputs
    return q[live], k[live], v[live], g[live], beta[live]
