"""Queries look at keys and values in paged memory."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from slotscope.instrument.event import Kind

from .plan import Plan, Reach
from .workspace import Workspace


def look(query: Tensor, keys: Tensor, values: Tensor, plan: Plan, scale: float) -> Tensor:
    """What each query sees: softmax(scale * query . keys) . values, over what its plan lets it see.

    Args:
        query: [T, heads, size].
        keys: [tokens, kv heads, size], a layer's pool.
        values: the same, or `keys` itself, whose copies are then made once.
    Returns:
        [T, heads, size].
    """
    if plan.batch.kind is not Kind.PREFILL:
        (reach,) = plan.reaches
        return _look_batch(query, *_gather(keys, values, reach, plan.workspace), reach, scale)
    # A row's gathered keys live until the next row's are gathered.
    looks = [
        _look_row(row, *_gather(keys, values, reach, plan.workspace), reach, scale)
        for row, reach in zip(query.split(plan.batch.lengths), plan.reaches, strict=True)
    ]
    return looks[0] if len(looks) == 1 else torch.cat(looks)


def _look_row(query: Tensor, key: Tensor, value: Tensor, reach: Reach, scale: float) -> Tensor:
    """One row of many queries, [t, heads, size]."""
    seen = scaled_dot_product_attention(
        query[None].transpose(1, 2), key, value, reach.mask, scale=scale, enable_gqa=True
    )
    return seen.transpose(1, 2)[0]


def _look_batch(query: Tensor, key: Tensor, value: Tensor, reach: Reach, scale: float) -> Tensor:
    """Rows of few queries. The heads of a group become queries of one head, so that its keys
    and values are read once."""
    rows, _, new, width = reach.mask.shape
    kv_heads, size = key.shape[1], key.shape[3]
    group = query.shape[1] // kv_heads
    folded = query.view(rows, new, kv_heads, group, size).permute(0, 2, 1, 3, 4)
    mask = reach.mask[:, :, :, None].expand(-1, -1, -1, group, -1)
    seen: Tensor = scaled_dot_product_attention(
        folded.reshape(rows, kv_heads, new * group, size),
        key,
        value,
        mask.reshape(rows, 1, new * group, width),
        scale=scale,
    )
    grouped: Tensor = seen.view(rows, kv_heads, new, group, size).transpose(1, 2)
    return grouped.flatten(2, 3).flatten(0, 1)


def _gather(
    keys: Tensor, values: Tensor, reach: Reach, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    """Pools [tokens, kv heads, size] to [rows, kv heads, L, size] each, copied to the workspace."""
    (rows, width), index = reach.locations.shape, reach.locations.flatten()

    def taken(name: str, pool: Tensor) -> Tensor:
        out = workspace.take(name, (rows * width, *pool.shape[1:]), pool)
        torch.index_select(pool, 0, index, out=out)
        rowwise: Tensor = out.unflatten(0, (rows, width))
        return rowwise.transpose(1, 2)

    key = taken("keys", keys)
    return key, key if values is keys else taken("values", values)
