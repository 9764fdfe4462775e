"""Kimi delta attention: a gated delta net, each channel of whose keys fades at its own rate."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import linear, softplus

from slotscope.engine.memory import Memory
from slotscope.kernels.kda import kda_chunk, kda_step, kda_verify

from .norm import GatedNorm, unit_length
from .plan import Plan
from .precision import wide
from .recurrence import Fed, Operators, Recurrence

KDA = Operators(kda_chunk, kda_step, kda_verify)


@dataclass(frozen=True, slots=True)
class KimiDeltaAttention:
    """Projection, short convolution, delta rule, gated norm, projection.

    The rows of `project` are in the order queries, keys, values | decay, first half | output gate,
    first half | beta. Decay and output gate are products of two thin matrices.
    """

    project: Tensor  # [3 * heads * size + 2 * size + heads, hidden]
    recurrence: Recurrence
    decay: Tensor  # [heads * size, size], second half
    rate: Tensor  # [heads, 1], wide dtype: -exp(A_log)
    rate_bias: Tensor  # [heads, size], wide dtype
    gate: Tensor  # [heads * size, size], second half
    norm: GatedNorm  # over a head's values
    output: Tensor  # [hidden, heads * size]
    heads: int
    size: int  # of a query, a key and a value alike

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; moves states as `Recurrence` does."""
        parts = (3 * self.heads * self.size, self.size, self.size, self.heads)
        mixed, decay, gate, beta = linear(x, self.project).split(parts, -1)
        decay, gate = linear(decay, self.decay), linear(gate, self.gate)
        seen = self.recurrence(mixed, lambda y: self._fed(y, decay, beta), plan, memory)
        gated = self.norm(seen, gate.unflatten(-1, (self.heads, self.size)), x.dtype)
        return linear(gated.flatten(1), self.output)

    def _fed(self, y: Tensor, decay: Tensor, beta: Tensor) -> Fed:
        """Convolved channels [T, channels], decay [T, heads * size] and beta [T, heads] to q, k, v,
        g and beta."""
        to, heads = wide(y.dtype), (self.heads, self.size)
        query, key, value = y.to(to).unflatten(-1, (3, *heads)).unbind(-3)
        decay = self.rate * softplus(decay.to(to).unflatten(-1, heads) + self.rate_bias)
        query = unit_length(query) * self.size**-0.5
        return query, unit_length(key), value, decay, beta.to(to).sigmoid()
