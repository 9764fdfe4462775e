"""Full attention over paged keys and values, its output gated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from slotscope.engine.memory import Memory
from slotscope.instrument.event import Kind

from .norm import Norm
from .plan import Plan, Reach
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention: norms on queries and keys, partial rotary, a sigmoid output gate."""

    project: (
        Tensor  # [(heads + 2 * kv heads + heads) * head size, hidden]: queries, keys, values, gates
    )
    bias: Tensor | None  # same rows
    norm: Norm  # of queries and keys, scale [heads + kv heads, head size]
    output: Tensor  # [hidden, heads * head size]
    output_bias: Tensor | None  # [hidden]
    layer: int  # index in memory.keys and memory.values
    heads: int
    kv_heads: int
    head_size: int

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; writes the new tokens' keys and values first, then reads."""
        size, both = self.head_size, self.heads + self.kv_heads
        parts = (both * size, self.kv_heads * size, self.heads * size)
        turned, value, gate = linear(x, self.project, self.bias).split(parts, -1)
        turned = plan.angles.rotate(self.norm(turned.unflatten(-1, (both, size))))
        query, key = turned.split((self.heads, self.kv_heads), 1)

        keys, values = memory.keys[self.layer], memory.values[self.layer]
        keys.index_copy_(0, plan.batch.locations, key)
        values.index_copy_(0, plan.batch.locations, value.unflatten(-1, (self.kv_heads, size)))
        seen = self._look(query, keys, values, plan)
        return linear(seen * torch.sigmoid(gate), self.output, self.output_bias)

    def _look(self, query: Tensor, keys: Tensor, values: Tensor, plan: Plan) -> Tensor:
        """Queries [T, heads, size] to what they see, [T, heads * size]."""
        if plan.batch.kind is not Kind.PREFILL:
            (reach,) = plan.reaches
            return self._look_batch(query, *_gather(keys, values, reach, plan.workspace), reach)
        # A row's gathered keys live until the next row's are gathered.
        looks = [
            self._look_row(row, *_gather(keys, values, reach, plan.workspace), reach)
            for row, reach in zip(query.split(plan.batch.lengths), plan.reaches, strict=True)
        ]
        return looks[0] if len(looks) == 1 else torch.cat(looks)

    def _look_row(self, query: Tensor, key: Tensor, value: Tensor, reach: Reach) -> Tensor:
        """One row of many queries, [t, heads, size]."""
        seen = scaled_dot_product_attention(
            query[None].transpose(1, 2), key, value, reach.mask, enable_gqa=True
        )
        return seen.transpose(1, 2).flatten(2)[0]

    def _look_batch(self, query: Tensor, key: Tensor, value: Tensor, reach: Reach) -> Tensor:
        """Rows of few queries. The heads of a group become queries of one head, so that its keys
        and values are read once."""
        rows, _, new, width = reach.mask.shape
        group = self.heads // self.kv_heads
        folded = query.view(rows, new, self.kv_heads, group, self.head_size).permute(0, 2, 1, 3, 4)
        mask = reach.mask[:, :, :, None].expand(-1, -1, -1, group, -1)
        seen = scaled_dot_product_attention(
            folded.reshape(rows, self.kv_heads, new * group, self.head_size),
            key,
            value,
            mask.reshape(rows, 1, new * group, width),
        )
        seen = seen.view(rows, self.kv_heads, new, group, self.head_size).transpose(1, 2)
        return seen.reshape(rows * new, self.heads * self.head_size)


def _gather(
    keys: Tensor, values: Tensor, reach: Reach, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    """Pools [tokens, kv heads, size] to [rows, kv heads, L, size] each, copied to the workspace."""
    (rows, width), index = reach.locations.shape, reach.locations.flatten()
    taken = []
    for name, pool in (("keys", keys), ("values", values)):
        out = workspace.take(name, (rows * width, *pool.shape[1:]), pool)
        torch.index_select(pool, 0, index, out=out)
        taken.append(out.unflatten(0, (rows, width)).transpose(1, 2))
    key, value = taken
    return key, value
