"""A small random block draft for a random model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from .random import RandomWeights

SMALL: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "rope_theta": 100.0,
    "attention_bias": True,
    "block_size": 8,
}


def make_block_draft(path: Path, target: dict[str, Tensor], *, seed: int = 0) -> Path:
    """Write a draft for a model with these tensors to folder `path`, for DFLASH and DSPARK alike.

    Its attention looks one token back, whatever that is: queries and keys are biases that positions
    turn. So the first guess follows the anchor as the model's own head would have it, and is
    accepted now and then; DSPARK's Markov head does that for every guess.
    """
    embedding = target["model.embed_tokens.weight"]
    unembedding = target.get("lm_head.weight", embedding)
    vocab, hidden = embedding.shape
    size = hidden // 2
    made = RandomWeights(torch.Generator().manual_seed(seed))
    for norm in ("hidden_norm", "norm", "layers.0.input_layernorm"):
        made.norm(norm, hidden)
    made.norm("layers.0.post_attention_layernorm", hidden)
    made.linear("fc", hidden, hidden)
    made.mlp("layers.0.mlp", hidden, SMALL["intermediate_size"])
    made.tensors["layers.0.mlp.down_proj.weight"] *= 0.1
    _looks_back(made, "layers.0.self_attn", hidden, size)
    made.tensors["markov_head.markov_w1.weight"] = embedding + 0.5 * made.normal(vocab, hidden)
    made.tensors["markov_head.markov_w2.weight"] = unembedding.clone()
    config = SMALL | {
        "vocab_size": vocab,
        "hidden_size": hidden,
        "head_dim": size,
        "num_key_value_heads": 2,
        "markov_rank": hidden,
        "dflash_config": {"mask_token_id": vocab - 1},
    }
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config, indent=2))
    save_file(made.tensors, path / "model.safetensors", {"format": "pt"})
    return path


def _looks_back(made: RandomWeights, name: str, hidden: int, size: int) -> None:
    """Two heads, each of which passes on its half of the values."""
    half = size // 2
    step = SMALL["rope_theta"] ** (-torch.arange(half) / half)  # radians for one position
    key = torch.cat((torch.ones(half), torch.zeros(half)))
    # A query that a turn by one position makes equal to the keys one position before it.
    query = torch.cat((step.cos(), -step.sin()))
    for part, bias in (("q", query), ("k", key), ("v", torch.zeros(size))):
        weight = torch.eye(hidden) if part == "v" else 0.1 * made.normal(hidden, hidden)
        made.tensors[f"{name}.{part}_proj.weight"] = weight / (1 if part == "v" else hidden**0.5)
        made.tensors[f"{name}.{part}_proj.bias"] = 5 * bias.repeat(2)
        if part != "v":
            made.norm(f"{name}.{part}_norm", size, center=1.6)
    made.tensors[f"{name}.o_proj.weight"] = 12 * torch.eye(hidden)
