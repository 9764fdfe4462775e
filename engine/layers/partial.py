"""Partial attention: what each rank of decode context sees by itself, and what that makes.

A softmax over all keys is the ranks' softmaxes, weighted by their shares of the normaliser (Milakov
and Gimelshein, arXiv 1805.02867, section 3.1): exact, not an approximation.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .precision import wide

Partial = tuple[Tensor, Tensor]
"""Of one rank: what is seen [..., t, size], and the log of the normaliser [..., t, 1]."""


def partial(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, blind: Tensor, scale: float
) -> Partial:
    """Attention over one rank's keys, L of them.

    Args:
        query: [rows, kv heads, t, size].
        key, value: [rows, kv heads, L, size].
        mask: [rows, 1, t, L], added to the scores: 0 or -inf.
        blind: [rows, 1, t] bool: -inf is all that the mask has for this query.
    Returns:
        In float32 at least. Of a blind query 0 and -inf, whatever the keys and values are.
    """
    dtype = wide(query.dtype)
    scores = query.to(dtype) @ key.to(dtype).mT * scale + mask
    normaliser = scores.logsumexp(-1, keepdim=True)
    seen = (scores - normaliser).exp() @ value.to(dtype)
    blind = blind[..., None]
    return seen.masked_fill_(blind, 0), normaliser.masked_fill_(blind, float("-inf"))


def merge(parts: Sequence[Partial]) -> Tensor:
    """[..., t, size] of the whole from all ranks' parts. Each query must see something on one."""
    seen = torch.stack([part for part, _ in parts])
    shares = torch.stack([normaliser for _, normaliser in parts]).softmax(0)
    return (shares * seen).sum(0)
