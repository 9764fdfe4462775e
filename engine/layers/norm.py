"""Root mean square norms. Both compute in the wide dtype and round once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu

from .precision import wide


@dataclass(frozen=True, slots=True)
class Norm:
    """y = x / rms(x) * (1 + weight): checkpoints of this family store weights around zero."""

    scale: Tensor  # [size] or [heads, size], wide dtype, the 1 included
    eps: float

    @staticmethod
    def centered(weight: Tensor, eps: float) -> Norm:
        """From a checkpoint's zero-centred weight, [size] or [heads, size]."""
        return Norm(1 + weight.to(wide(weight.dtype)), eps)

    def __call__(self, x: Tensor) -> Tensor:
        """[..., size] (or [..., heads, size]) to the same shape and dtype."""
        normed = rms_norm(x.to(self.scale.dtype), x.shape[-1:], None, self.eps)
        return (normed * self.scale).to(x.dtype)


@dataclass(frozen=True, slots=True)
class GatedNorm:
    """y = x / rms(x) * weight * silu(gate): the norm after the recurrence."""

    weight: Tensor  # [size], wide dtype; around one, unlike `Norm`'s
    eps: float

    def __call__(self, x: Tensor, gate: Tensor, dtype: torch.dtype) -> Tensor:
        """x and gate [..., size], of any dtype, to [..., size] of `dtype`."""
        to = self.weight.dtype
        normed = rms_norm(x.to(to), x.shape[-1:], self.weight, self.eps)
        return (normed * silu(gate.to(to))).to(dtype)
