"""Feed-forward layers from a checkpoint's tensors, whatever names the family gives them."""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import Experts

from .weights import Weights

NAMES = ("gate_proj", "up_proj", "down_proj")
"""The three matrices of a gated block, as most families call them."""


def mlp(
    weights: Weights, name: str, hidden: int, inner: int, names: tuple[str, str, str] = NAMES
) -> Mlp:
    """A gated block."""
    gate, up, down = names
    gate_up = (weights.matrix(f"{name}.{part}", inner, hidden) for part in (gate, up))
    return Mlp(torch.cat(tuple(gate_up)), weights.matrix(f"{name}.{down}", hidden, inner))


def experts(
    weights: Weights,
    name: str,
    count: int,
    hidden: int,
    inner: int,
    names: tuple[str, str, str] = NAMES,
) -> Experts:
    """Experts come one by one, as on the Hub, or stacked, as transformers holds them."""
    if f"{name}.gate_up_proj" in weights:
        return stacked(
            weights.take(f"{name}.gate_up_proj", count, 2 * inner, hidden),
            weights.take(f"{name}.down_proj", count, hidden, inner),
        )
    each = [mlp(weights, f"{name}.{number}", hidden, inner, names) for number in range(count)]
    return Experts(tuple(one.gate_up.T for one in each), tuple(one.down.T for one in each))


def stacked(gate_up: Tensor, down: Tensor) -> Experts:
    """From [experts, 2 * inner, hidden] and [experts, hidden, inner]."""
    return Experts(gate_up.mT.unbind(), down.mT.unbind())
