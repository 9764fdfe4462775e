"""Mamba2: a state that fades and is written to, at a pace that each token sets."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import linear, softplus

from slotscope.engine.memory import Memory
from slotscope.kernels.mamba2 import mamba2_chunk, mamba2_step, mamba2_verify

from .norm import GroupedGatedNorm
from .plan import Plan
from .precision import wide
from .recurrence import Fed, Operators, Recurrence

MAMBA2 = Operators(mamba2_chunk, mamba2_step, mamba2_verify)


@dataclass(frozen=True, slots=True)
class Mamba2:
    """Projection, short convolution, state space recurrence, skip, gated norm, projection.

    The rows of `project` are in a checkpoint's order: output gate | inputs, B, C, which the
    convolution takes | time steps.
    """

    project: Tensor  # [inner + channels + heads, hidden]; channels = inner + 2 * groups * state
    bias: Tensor | None  # same rows
    recurrence: Recurrence  # its skip is D
    rate: Tensor  # [heads], wide dtype: -exp(A_log)
    step_bias: Tensor  # [heads], wide dtype: dt_bias
    norm: GroupedGatedNorm  # over the groups' values
    output: Tensor  # [hidden, inner]; inner = heads * head size
    output_bias: Tensor | None  # [hidden]
    heads: int
    head_size: int
    groups: int  # heads of a group share B and C
    state_size: int

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]; moves states as `Recurrence` does."""
        inner = self.heads * self.head_size
        parts = (inner, inner + 2 * self.groups * self.state_size, self.heads)
        gate, mixed, steps = linear(x, self.project, self.bias).split(parts, -1)
        seen = self.recurrence(mixed, lambda y: self._fed(y, steps), plan, memory)
        return linear(self.norm(seen.flatten(1), gate, x.dtype), self.output, self.output_bias)

    def _fed(self, y: Tensor, steps: Tensor) -> Fed:
        """Convolved channels [T, channels] and time steps [T, heads] to c, b, x, g and dt."""
        to, group = wide(y.dtype), (self.groups, self.state_size)
        inner, shared = self.heads * self.head_size, self.groups * self.state_size
        x, b, c = y.to(to).split((inner, shared, shared), -1)
        dt = softplus(steps.to(to) + self.step_bias)
        x = x.unflatten(-1, (self.heads, self.head_size))
        return c.unflatten(-1, group), b.unflatten(-1, group), x, dt * self.rate, dt
