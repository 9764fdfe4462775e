"""The gated delta rule token by token, in torch, for all rows at once.

Arguments are described in `slotscope.kernels.gdn`.
"""

from __future__ import annotations

from torch import Tensor

from slotscope.kernels import recurrence
from slotscope.kernels.recurrence import per_value_head


def gdn_step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.gdn.gdn_step`."""
    return recurrence.step(advance, (q, k, v, g, beta), state, slots)


def gdn_verify(
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
    """See `slotscope.kernels.gdn.gdn_verify`."""
    return recurrence.verify(advance, (q, k, v, g, beta), state, slots, steps, rows, parents)


def advance(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, current: Tensor) -> Tensor:
    """Move states [N, HV, K, V] by one token, in place.

    S = exp(g) S;  S = S + k (beta (v - k S));  o = q S

    Returns:
        [N, HV, V] in the states' dtype.
    """
    current *= g.to(current).exp()[..., None, None]
    return correct(q, k, v, beta, current)


def correct(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, current: Tensor) -> Tensor:
    """The delta rule's write and read, on states that have faded: what GDN and KDA share."""
    heads = v.shape[-2]
    q, k = per_value_head(q, heads).to(current), per_value_head(k, heads).to(current)
    error = v.to(current) - (k.unsqueeze(-2) @ current).squeeze(-2)
    error *= beta.to(current).unsqueeze(-1)
    current.addcmul_(k.unsqueeze(-1), error.unsqueeze(-2))
    return (q.unsqueeze(-2) @ current).squeeze(-2)
