"""Gated delta net: linear attention whose state forgets and corrects itself."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import linear, softplus

from slotscope.engine.memory import Memory
from slotscope.kernels.gdn import gdn_chunk, gdn_step, gdn_verify

from .norm import GatedNorm, unit_length
from .plan import Plan
from .precision import wide
from .recurrence import Fed, Operators, Recurrence

GDN = Operators(gdn_chunk, gdn_step, gdn_verify)


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """Projection, short convolution, gated delta rule, gated norm, projection.

    The rows of `project` are in the order queries, keys, values | output gate | b | a, heads in
    order within each, so that the convolution's channels are one slice.
    """

    project: Tensor  # [channels + value heads * value dim + 2 * value heads, hidden]
    recurrence: Recurrence
    rate: Tensor  # [value heads], wide dtype: -exp(A_log)
    rate_bias: Tensor  # [value heads], wide dtype
    norm: GatedNorm  # over a head's values
    output: Tensor  # [hidden, value heads * value dim]
    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; moves states as `Recurrence` does."""
        keys, values = self.key_heads * self.key_dim, self.value_heads * self.value_dim
        parts = (2 * keys + values, values, self.value_heads, self.value_heads)
        mixed, gate, b, a = linear(x, self.project).split(parts, -1)
        seen = self.recurrence(mixed, lambda y: self._fed(y, b, a), plan, memory)
        gated = self.norm(seen, gate.unflatten(-1, (self.value_heads, self.value_dim)), x.dtype)
        return linear(gated.flatten(1), self.output)

    def _fed(self, y: Tensor, b: Tensor, a: Tensor) -> Fed:
        """Convolved channels [T, channels], and b, a [T, value heads], to q, k, v, g, beta."""
        to, dim = wide(y.dtype), self.key_dim
        keys = self.key_heads * dim
        both = y[..., : 2 * keys].unflatten(-1, (2, self.key_heads, dim)).to(to)
        query, key = unit_length(both).unbind(-3)
        value = y[..., 2 * keys :].unflatten(-1, (self.value_heads, self.value_dim)).to(to)
        decay = self.rate * softplus(a.to(to) + self.rate_bias)
        return query * dim**-0.5, key, value, decay, b.to(to).sigmoid()
