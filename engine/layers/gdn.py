"""Gated delta net: linear attention whose state forgets and corrects itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, softplus

from slotscope.engine.memory import Memory
from slotscope.instrument.event import Kind
from slotscope.kernels.conv import conv_prefill, conv_update, conv_verify
from slotscope.kernels.gdn import gdn_chunk, gdn_step, gdn_verify

from .norm import GatedNorm
from .plan import CHUNK, Plan, Row
from .precision import wide

EPSILON = 1e-6
"""Under the root of the queries' and keys' length, as in transformers and fla."""

Fed = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Query, key, value, decay, beta."""


@dataclass(frozen=True, slots=True)
class Gates:
    """What the recurrence is fed, wide dtype; `lead` is [T] or [rows, tokens a row]."""

    query: Tensor  # [*lead, key heads, key dim], of length key dim ** -0.5
    key: Tensor  # [*lead, key heads, key dim], of length 1
    value: Tensor  # [*lead, value heads, value dim]
    decay: Tensor  # [*lead, value heads], natural log, <= 0
    beta: Tensor  # [*lead, value heads], write strength in (0, 1)

    def fed(self, start: int = 0, end: int | None = None) -> Fed:
        """Tokens (or rows) start:end, in the order that the kernels take."""
        cut = slice(start, end)
        return self.query[cut], self.key[cut], self.value[cut], self.decay[cut], self.beta[cut]


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """Projection, short convolution, gated delta rule, gated norm, projection.

    The rows of `project` are in the order queries, keys, values | output gate | b | a, heads in
    order within each, so that the convolution's channels are one slice.
    """

    project: Tensor  # [channels + value heads * value dim + 2 * value heads, hidden]
    conv: Tensor  # [channels, kernel size]
    rate: Tensor  # [value heads], wide dtype: -exp(A_log)
    rate_bias: Tensor  # [value heads], wide dtype
    norm: GatedNorm  # over a head's values
    output: Tensor  # [hidden, value heads * value dim]
    layer: int  # index in memory.conv and memory.ssm
    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]. Prefill and decode move the states of the batch's slots;
        verify leaves them and writes the state after each token to the rows' scratch."""
        values = self.value_heads * self.value_dim
        parts = (self.conv.shape[0], values, self.value_heads, self.value_heads)
        mixed, gate, b, a = linear(x, self.project).split(parts, -1)
        run = self._prefill if plan.batch.kind is Kind.PREFILL else self._step
        seen = run(mixed, b, a, plan, memory)
        gated = self.norm(seen, gate.unflatten(-1, (self.value_heads, self.value_dim)), x.dtype)
        return linear(gated.flatten(1), self.output)

    def _prefill(self, mixed: Tensor, b: Tensor, a: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """Row by row through the chunked form; the rest at once."""
        conv, ssm = memory.conv[self.layer], memory.ssm[self.layer]
        convolved = [self._convolve(mixed[row.start : row.end], row, conv) for row in plan.rows]
        gates = self._gates(torch.cat(convolved), b, a)
        return torch.cat([self._scan(gates, row, ssm) for row in plan.rows])

    def _convolve(self, x: Tensor, row: Row, conv: Tensor) -> Tensor:
        """[t, channels] of one row; its slots get the windows."""
        initial = conv[row.slot] if row.slot else torch.zeros_like(conv[0])
        y, windows = conv_prefill(x, initial, self.conv, None)
        for track in row.tracks:
            conv[track.slot] = windows.after(track.tokens)
        if row.slot:
            conv[row.slot] = windows.after(x.shape[0])
        return y

    def _scan(self, gates: Gates, row: Row, ssm: Tensor) -> Tensor:
        """[t, value heads, value dim] of one row; its slots get the states."""
        initial = ssm[row.slot] if row.slot else torch.zeros_like(ssm[0])
        seen, states = gdn_chunk(*gates.fed(row.start, row.end), initial, CHUNK)
        for track in row.tracks:
            ssm[track.slot] = states[(track.tokens - 1) // CHUNK]
        if row.slot:
            ssm[row.slot] = states[-1]
        return seen

    def _step(self, mixed: Tensor, b: Tensor, a: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """One token a row (decode), or a few that may yet be refused (verify: scratch rows)."""
        conv, ssm = memory.conv[self.layer], memory.ssm[self.layer]
        slots, scratch = plan.batch.slots, plan.batch.scratch
        if scratch is None:
            gates = self._gates(conv_update(mixed, conv, self.conv, None, slots), b, a)
            return gdn_step(*gates.fed(), ssm, slots)
        lead = (slots.shape[0], -1)
        windows, steps = memory.conv_steps[self.layer], memory.ssm_steps[self.layer]
        x = mixed.unflatten(0, lead)
        y = conv_verify(x, conv, self.conv, None, slots, windows, scratch)
        gates = self._gates(y, b.unflatten(0, lead), a.unflatten(0, lead))
        return gdn_verify(*gates.fed(), ssm, slots, steps, scratch).flatten(0, 1)

    def _gates(self, y: Tensor, b: Tensor, a: Tensor) -> Gates:
        """Convolved channels [*lead, channels], and b, a [*lead, value heads]."""
        to, dim = wide(y.dtype), self.key_dim
        keys = self.key_heads * dim
        both = y[..., : 2 * keys].unflatten(-1, (2, self.key_heads, dim)).to(to)
        # x / sqrt(sum(x^2) + eps) is rms_norm with eps / dim, times dim ** -0.5; the query gets
        # another dim ** -0.5.
        both = rms_norm(both, (dim,), None, EPSILON / dim) * dim**-0.5
        query, key = both.unbind(-3)
        return Gates(
            query=query * dim**-0.5,
            key=key,
            value=y[..., 2 * keys :].unflatten(-1, (self.value_heads, self.value_dim)).to(to),
            decay=self.rate * softplus(a.to(to) + self.rate_bias),
            beta=b.to(to).sigmoid(),
        )
