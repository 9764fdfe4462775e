"""Kimi delta attention token by token, in torch, for all rows at once.

Arguments are described in `slotscope.kernels.kda`.
"""

from __future__ import annotations

from torch import Tensor

from slotscope.kernels import recurrence
from slotscope.kernels.gdn.reference import correct


def kda_step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.kda.kda_step`."""
    return recurrence.step(advance, (q, k, v, g, beta), state, slots)


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
    """See `slotscope.kernels.kda.kda_verify`."""
    return recurrence.verify(advance, (q, k, v, g, beta), state, slots, steps, rows, parents)


def advance(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, current: Tensor) -> Tensor:
    """Move states [N, HV, K, V] by one token, in place.

    S = diag(exp(g)) S;  S = S + k (beta (v - k S));  o = q S

    Returns:
        [N, HV, V] in the states' dtype.
    """
    current *= g.to(current).exp().unsqueeze(-1)
    return correct(q, k, v, beta, current)
