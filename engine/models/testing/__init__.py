"""Small random checkpoints, for tests of whatever needs a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from . import granitemoehybrid, kimi_linear, qwen3_next
from .block_draft import make_block_draft
from .random import RandomWeights

SMALL = qwen3_next.SMALL
"""config.json of the family that `make_checkpoint` makes unless told otherwise."""

Fill = Callable[[dict[str, Any], RandomWeights, bool], None]

FAMILIES: dict[str, tuple[dict[str, Any], Fill]] = {
    "qwen3_next": (qwen3_next.SMALL, qwen3_next.fill),
    "granitemoehybrid": (granitemoehybrid.SMALL, granitemoehybrid.fill),
    "kimi_linear": (kimi_linear.SMALL, kimi_linear.fill),
}
"""config.json and the maker of weights, by `model_type`."""


def make_checkpoint(
    path: Path,
    *,
    family: str = "qwen3_next",
    seed: int = 0,
    head: bool = True,
    draft: bool = False,
    **config: Any,
) -> Path:
    """Write a random folder of a family to `path` (made if absent) and return it.

    The recurrent state is visible: it fades over some hundred tokens and weighs as much as the
    other layers, so one that lacks a token gives other greedy tokens within the next few. Drafts
    of an MTP head are accepted now and then, every third or fourth, so verifies take any step.

    Args:
        family: a key of `FAMILIES`.
        seed: of the weights.
        head: with an MTP head, where the family has one.
        draft: with a block draft, in the folder `draft`.
        config: fields of config.json in place of the family's.
    """
    small, fill = FAMILIES[family]
    merged = {**small, **config}
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(merged, indent=2))
    weights = RandomWeights(torch.Generator().manual_seed(seed))
    fill(merged, weights, head)
    save_file(weights.tensors, path / "model.safetensors", {"format": "pt"})
    if draft:
        make_block_draft(path / "draft", weights.tensors, seed=seed)
    return path
