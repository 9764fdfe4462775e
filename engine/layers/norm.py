"""Root mean square norms. All compute in the wide dtype and round once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from .precision import wide

LENGTH_EPSILON = 1e-6
"""Under the root of the queries' and keys' length, as in transformers and fla."""


@dataclass(frozen=True, slots=True)
class Norm:
    """y = x / rms(x) * scale."""

    scale: Tensor  # [size] or [heads, size], wide dtype
    eps: float

    @staticmethod
    def centered(weight: Tensor, eps: float) -> Norm:
        """From a weight that a checkpoint stores around zero, [size] or [heads, size]."""
        return Norm(1 + weight.to(wide(weight.dtype)), eps)

    def __call__(self, x: Tensor) -> Tensor:
        """[..., size] (or [..., heads, size]) to the same shape and dtype."""
        normed = rms_norm(x.to(self.scale.dtype), x.shape[-1:], None, self.eps)
        return (normed * self.scale).to(x.dtype)


@dataclass(frozen=True, slots=True)
class GatedNorm:
    """y = x / rms(x) * weight * activation(gate): the norm after a delta rule."""

    weight: Tensor  # [size], wide dtype
    eps: float
    activation: Callable[[Tensor], Tensor] = silu

    def __call__(self, x: Tensor, gate: Tensor, dtype: torch.dtype) -> Tensor:
        """x and gate [..., size], of any dtype, to [..., size] of `dtype`."""
        to = self.weight.dtype
        normed = rms_norm(x.to(to), x.shape[-1:], self.weight, self.eps)
        return (normed * self.activation(gate.to(to))).to(dtype)


@dataclass(frozen=True, slots=True)
class GroupedGatedNorm:
    """y = z / rms(z) * weight with z = x silu(gate): Mamba2's norm, which gates first.

    The mean is taken over each of the weight's groups alone.
    """

    weight: Tensor  # [groups, size], wide dtype
    eps: float

    def __call__(self, x: Tensor, gate: Tensor, dtype: torch.dtype) -> Tensor:
        """x and gate [..., groups * size], of any dtype, to the same shape, of `dtype`."""
        to = self.weight.dtype
        gated = (x.to(to) * silu(gate.to(to))).unflatten(-1, self.weight.shape)
        normed = rms_norm(gated, self.weight.shape[-1:], None, self.eps)
        return (normed * self.weight).flatten(-2).to(dtype)


def unit_length(x: Tensor) -> Tensor:
    """x / sqrt(sum(x^2) + epsilon) along the last dimension."""
    size = x.shape[-1]
    normed: Tensor = rms_norm(x, (size,), None, LENGTH_EPSILON / size)
    return normed / sqrt(size)
