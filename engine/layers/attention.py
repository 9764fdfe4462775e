"""Full attention over paged keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from slotscope.engine.memory import Memory

from .norm import Norm
from .paged import look
from .plan import Plan
from .rotary import Angles


@dataclass(frozen=True, slots=True)
class Attention:
    """Grouped-query attention; positions turn queries and keys where the plan has angles."""

    project: Tensor  # [rows, hidden]: queries, keys, values, and gates if gated, head by head
    bias: Tensor | None  # same rows
    norm: Norm | None  # of queries and keys, scale [heads + kv heads, head size]
    output: Tensor  # [hidden, heads * head size]
    output_bias: Tensor | None  # [hidden]
    layer: int  # index in memory.keys and memory.values
    heads: int
    kv_heads: int
    head_size: int
    scale: float  # of the product of a query and a key
    gated: bool  # a sigmoid gate for each value of the output

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; writes the new tokens' keys and values first, then reads."""
        size, both = self.head_size, self.heads + self.kv_heads
        parts = (both * size, self.kv_heads * size, self.heads * size if self.gated else 0)
        turned, value, gate = linear(x, self.project, self.bias).split(parts, -1)
        turned = turned.unflatten(-1, (both, size))
        if self.norm:
            turned = self.norm(turned)
        if plan.angles:
            turned = plan.angles.rotate(turned)
        query, key = turned.split((self.heads, self.kv_heads), 1)

        value = value.unflatten(-1, (self.kv_heads, size))
        memory.keep(self.layer, plan.batch.locations, key, value)
        keys, values = memory.keys[self.layer], memory.values[self.layer]
        seen = look(query, keys, values, plan, self.scale).flatten(1)
        if self.gated:
            seen = seen * torch.sigmoid(gate)
        return linear(seen, self.output, self.output_bias)

    def remember(self, x: Tensor, angles: Angles, locations: Tensor, memory: Memory) -> None:
        """Write the keys and values of tokens [T, hidden] that nobody asks from."""
        size, first = self.head_size, self.heads * self.head_size
        rows = slice(first, first + 2 * self.kv_heads * size)
        bias = None if self.bias is None else self.bias[rows]
        both = linear(x, self.project[rows], bias).unflatten(-1, (2 * self.kv_heads, size))
        key, value = both.split(self.kv_heads, 1)
        if self.norm:
            key = Norm(self.norm.scale[self.heads :], self.norm.eps)(key)
        memory.keep(self.layer, locations, angles.rotate(key), value)
