"""The dense feed-forward block."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import linear, silu


@dataclass(frozen=True, slots=True)
class Mlp:
    """down(silu(gate x) * up x), gate and up in one product."""

    gate_up: Tensor  # [2 * inner, hidden]
    down: Tensor  # [hidden, inner]

    def __call__(self, x: Tensor) -> Tensor:
        """[T, hidden] to [T, hidden]."""
        return linear(gated(linear(x, self.gate_up)), self.down)


def gated(gate_up: Tensor) -> Tensor:
    """[..., 2 * inner] to [..., inner]: silu of the first half, times the second."""
    gate, up = gate_up.chunk(2, -1)
    return silu(gate) * up
