"""Mamba2's recurrence token by token, in torch, for all rows at once.

Arguments are described in `slotscope.kernels.mamba2`.
"""

from __future__ import annotations

from torch import Tensor

from slotscope.kernels import recurrence
from slotscope.kernels.recurrence import per_value_head


def mamba2_step(
    c: Tensor, b: Tensor, x: Tensor, g: Tensor, dt: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.mamba2.mamba2_step`."""
    return recurrence.step(advance, (c, b, x, g, dt), state, slots)


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
    """See `slotscope.kernels.mamba2.mamba2_verify`."""
    return recurrence.verify(advance, (c, b, x, g, dt), state, slots, steps, rows, parents)


def advance(c: Tensor, b: Tensor, x: Tensor, g: Tensor, dt: Tensor, current: Tensor) -> Tensor:
    """Move states [N, HV, K, V] by one token, in place.

    S = exp(g) S + b (dt x);  o = c S

    Returns:
        [N, HV, V] in the states' dtype.
    """
    heads = x.shape[-2]
    c, b = per_value_head(c, heads).to(current), per_value_head(b, heads).to(current)
    current *= g.to(current).exp()[..., None, None]
    written = x.to(current) * dt.to(current).unsqueeze(-1)
    current.addcmul_(b.unsqueeze(-1), written.unsqueeze(-2))
    return (c.unsqueeze(-2) @ current).squeeze(-2)
