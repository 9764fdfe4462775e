"""Mixture of experts: each token asks a few experts, and one that all share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import linear

from .mlp import Mlp, gated
from .precision import wide


class Router(Protocol):
    """Who is asked, and what the answers weigh."""

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[T, hidden] to the chosen experts' weights [T, top_k] of x's dtype, and their numbers."""


@dataclass(frozen=True, slots=True)
class SoftmaxRouter:
    """Softmax over all experts, the `top_k` best of each token."""

    project: Tensor  # [experts, hidden]
    top_k: int
    normalize: bool  # the chosen experts' weights sum to 1

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """See `Router`."""
        logits = linear(x, self.project)
        weight, expert = logits.softmax(-1, dtype=wide(x.dtype)).topk(self.top_k, -1)
        if self.normalize:
            weight = weight / weight.sum(-1, keepdim=True)
        return weight.to(x.dtype), expert


@dataclass(frozen=True, slots=True)
class GroupedRouter:
    """A sigmoid for each expert; the `top_k` best of each token among its best groups.

    A group is as good as its two best experts. `bias` has a say in who is asked, and none in what
    the answers weigh (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
    """

    project: Tensor  # [experts, hidden], wide dtype
    bias: Tensor  # [experts], wide dtype
    groups: int
    top_groups: int
    top_k: int
    normalize: bool  # the chosen experts' weights sum to `scale`
    scale: float

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """See `Router`."""
        score = torch.sigmoid(linear(x.to(self.project.dtype), self.project))
        preferred = (score + self.bias).unflatten(-1, (self.groups, -1))
        if self.top_groups < self.groups:
            best = preferred.topk(2, -1).values.sum(-1).topk(self.top_groups, -1).indices
            out = torch.ones_like(preferred[..., 0], dtype=torch.bool).scatter_(-1, best, False)
            preferred = preferred.masked_fill(out[..., None], float("-inf"))
        expert = preferred.flatten(-2).topk(self.top_k, -1).indices
        weight = score.gather(-1, expert)
        if self.normalize:
            weight = weight / weight.sum(-1, keepdim=True)
        return (weight * self.scale).to(x.dtype), expert


@dataclass(frozen=True, slots=True)
class Experts:
    """Gated blocks, of which each token asks a few."""

    gate_up: tuple[Tensor, ...]  # for each expert [hidden, 2 * inner]
    down: tuple[Tensor, ...]  # for each expert [inner, hidden]

    def __call__(self, x: Tensor, expert: Tensor) -> Tensor:
        """What each token's experts [T, top_k] say: [T, top_k, hidden].

        Tokens are sorted by expert, so an expert makes one product and one that nobody asks none.
        """
        asked, order = expert.flatten().sort(stable=True)
        counts = torch.bincount(asked, minlength=len(self.gate_up)).tolist()
        inner = gated(_grouped(x[order // expert.shape[1]], self.gate_up, counts))
        sorted_answers = _grouped(inner, self.down, counts)
        result = torch.empty_like(sorted_answers)
        result[order] = sorted_answers
        return result.view(*expert.shape, -1)


@dataclass(frozen=True, slots=True)
class Moe:
    """The experts' weighted answers, and the shared expert's."""

    router: Router
    experts: Experts
    shared: Mlp
    shared_gate: Tensor | None = None  # [1, hidden]; None: the shared expert counts in full

    def __call__(self, x: Tensor) -> Tensor:
        """[T, hidden] to [T, hidden]."""
        weight, expert = self.router(x)
        shared = self.shared(x)
        if self.shared_gate is not None:
            shared = torch.sigmoid(linear(x, self.shared_gate)) * shared
        return (self.experts(x, expert) * weight[..., None]).sum(1) + shared


def _grouped(x: Tensor, weights: tuple[Tensor, ...], counts: list[int]) -> Tensor:
    """x [N, A], its first counts[0] rows for weights[0] [A, B], the next for weights[1]: [N, B]."""
    result = x.new_empty(x.shape[0], weights[0].shape[1])
    parts = zip(x.split(counts), result.split(counts), weights, counts, strict=True)
    for rows, out, weight, count in parts:
        if count:
            torch.mm(rows, weight, out=out)
    return result
