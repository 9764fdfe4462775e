"""Rotary positions over the first part of each head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .precision import wide


@dataclass(frozen=True, slots=True)
class Angles:
    """cos and sin of one forward, [T, 1, size / 2] each; every attention layer uses the same."""

    cos: Tensor
    sin: Tensor

    def rotate(self, x: Tensor) -> Tensor:
        """[T, heads, head size]: turn the first `size` values of each head, pass on the rest.

        Value i is paired with value i + size / 2, as in GPT-NeoX and transformers' `rotate_half`.
        """
        half = self.cos.shape[-1]
        first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return torch.cat(
            (first * self.cos - second * self.sin, second * self.cos + first * self.sin, rest), -1
        )


@dataclass(frozen=True, slots=True)
class Rotary:
    """How fast each pair of values turns with the position."""

    frequency: Tensor  # [size / 2], wide dtype, radians for one position

    @staticmethod
    def of(theta: float, size: int, dtype: torch.dtype, device: torch.device) -> Rotary:
        """frequency[i] = theta ** (-2 i / size)."""
        steps = torch.arange(0, size, 2, dtype=wide(dtype), device=device)
        return Rotary(1 / (theta ** (steps / size)))

    def angles(self, positions: Tensor, dtype: torch.dtype) -> Angles:
        """For positions [T] int64, in `dtype`."""
        angle = (positions[:, None].to(self.frequency.dtype) * self.frequency)[:, None]
        return Angles(angle.cos().to(dtype), angle.sin().to(dtype))
