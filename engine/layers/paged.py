"""Queries look at keys and values in paged memory, on one rank or on several."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from slotscope.instrument.event import Kind

from .partial import merge, partial
from .plan import Plan, Reach


def look(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, scale: float) -> Tensor:
    """What each query sees: softmax(scale * query . keys) . values, over what its plan lets it see.

    Args:
        query: [T, heads, size].
        keys: [ranks, tokens of a rank, kv heads, size], a layer's pools.
        values: the same, or `keys` itself, whose copies are then made once.
    Returns:
        [T, heads, size].
    """
    prefill = plan.batch.kind is Kind.PREFILL
    # What is gathered lives until the next is: of a rank until its part is computed.
    looks = [
        _look(part, keys, values, plan, reaches, scale)
        for part, reaches in zip(
            query.split(plan.batch.lengths) if prefill else (query,), plan.reaches, strict=True
        )
    ]
    return looks[0] if len(looks) == 1 else torch.cat(looks)


def _look(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    plan: Plan,
    reaches: tuple[Reach, ...],
    scale: float,
) -> Tensor:
    """A prefill's row, or a batch's rows of equal lengths."""
    gathered = (_gather(keys, values, plan, reach, rank) for rank, reach in enumerate(reaches))
    if len(reaches) == 1:
        (reach,), ((key, value),) = reaches, gathered
        one = _look_row if plan.batch.kind is Kind.PREFILL else _look_batch
        return one(query, key, value, reach, scale)
    rows, kv_heads = reaches[0].mask.shape[0], keys.shape[2]
    group = query.shape[1] // kv_heads
    folded = _fold(query, rows, kv_heads)
    parts = [
        partial(folded, key, value, _each(reach.mask, group), _each(reach.blind, group), scale)
        for reach, (key, value) in zip(reaches, gathered, strict=True)
    ]
    return _unfold(merge(parts).to(query.dtype), group)


def _look_row(query: Tensor, key: Tensor, value: Tensor, reach: Reach, scale: float) -> Tensor:
    """One row of many queries, [t, heads, size]."""
    seen = scaled_dot_product_attention(
        query[None].transpose(1, 2), key, value, reach.mask, scale=scale, enable_gqa=True
    )
    return seen.transpose(1, 2)[0]


def _look_batch(query: Tensor, key: Tensor, value: Tensor, reach: Reach, scale: float) -> Tensor:
    """Rows of few queries."""
    rows, kv_heads = key.shape[:2]
    group = query.shape[1] // kv_heads
    folded = _fold(query, rows, kv_heads)
    mask = _each(reach.mask, group)
    return _unfold(scaled_dot_product_attention(folded, key, value, mask, scale=scale), group)


def _fold(query: Tensor, rows: int, kv_heads: int) -> Tensor:
    """[rows * t, heads, size] to [rows, kv heads, t * group, size]: the heads of a group become
    queries of one head, so that its keys and values are read once."""
    parted: Tensor = query.unflatten(0, (rows, -1)).unflatten(2, (kv_heads, -1))
    return parted.permute(0, 2, 1, 3, 4).flatten(2, 3)


def _unfold(seen: Tensor, group: int) -> Tensor:
    """[rows, kv heads, t * group, size] to [rows * t, heads, size]."""
    grouped: Tensor = seen.unflatten(2, (-1, group)).transpose(1, 2)
    return grouped.flatten(2, 3).flatten(0, 1)


def _each(mask: Tensor, group: int) -> Tensor:
    """[rows, 1, t, ...] to [rows, 1, t * group, ...]."""
    shape = (*mask.shape[:3], group, *mask.shape[3:])
    return mask.unsqueeze(3).expand(shape).flatten(2, 3)


def _gather(
    keys: Tensor, values: Tensor, plan: Plan, reach: Reach, rank: int
) -> tuple[Tensor, Tensor]:
    """A rank's pools [tokens, kv heads, size] to [rows, kv heads, L, size] each, copied to the
    workspace."""
    (rows, width), index = reach.locations.shape, reach.locations.flatten()

    def taken(name: str, pool: Tensor) -> Tensor:
        out = plan.workspace.take(name, (rows * width, *pool.shape[1:]), pool)
        torch.index_select(pool, 0, index, out=out)
        rowwise: Tensor = out.unflatten(0, (rows, width))
        return rowwise.transpose(1, 2)

    key = taken("keys", keys[rank])
    return key, key if values is keys else taken("values", values[rank])
