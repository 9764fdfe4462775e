"""A small random GraniteMoeHybrid."""

from __future__ import annotations

from typing import Any

import torch

from slotscope.engine.models.config import FULL
from slotscope.engine.models.granitemoehybrid_config import GraniteMoeHybridConfig

from .random import RandomWeights

SMALL: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "architectures": ["GraniteMoeHybridForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 40,
    "shared_intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "layer_types": ["mamba", "attention"] * 2,
    "position_embedding_type": "nope",
    "embedding_multiplier": 0.5,
    "logits_scaling": 0.5,
    "residual_multiplier": 1.2,
    "attention_multiplier": 0.3,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "mamba_n_heads": 6,
    "mamba_n_groups": 2,
    "mamba_d_state": 20,
    "mamba_d_head": 32,
    "mamba_expand": 3,
    "mamba_d_conv": 4,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}
"""Every size differs from the others where it may, so that a confusion of two doesn't go unseen."""


def fill(config: dict[str, Any], weights: RandomWeights, head: bool) -> None:
    """All tensors of a model with this config.json. The family has no MTP head."""
    _Filler(GraniteMoeHybridConfig.read(config), weights).fill()


class _Filler:
    def __init__(self, config: GraniteMoeHybridConfig, weights: RandomWeights) -> None:
        self._config, self._weights = config, weights

    def fill(self) -> None:
        config, weights = self._config, self._weights
        weights.embeddings(config.vocab_size, config.hidden_size, tied=config.tie_word_embeddings)
        weights.norm("model.norm", config.hidden_size)
        for layer, kind in enumerate(config.layer_types):
            self._block(f"model.layers.{layer}", kind == FULL)

    def _block(self, name: str, full: bool) -> None:
        config, weights, hidden = self._config, self._weights, self._config.hidden_size
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights.norm(f"{name}.{norm}", hidden)
        if full:
            self._attention(f"{name}.self_attn")
        else:
            self._recurrence(f"{name}.mamba")
        shared = config.shared_intermediate_size
        weights.linear(f"{name}.shared_mlp.input_linear", 2 * shared, hidden)
        weights.linear(f"{name}.shared_mlp.output_linear", hidden, shared)
        if config.num_local_experts:
            self._experts(f"{name}.block_sparse_moe")

    def _attention(self, name: str) -> None:
        config, linear, hidden = self._config, self._weights.linear, self._config.hidden_size
        inner, size = config.num_attention_heads * config.head_dim, config.head_dim
        linear(f"{name}.q_proj", inner, hidden, config.attention_bias)
        for part in ("k_proj", "v_proj"):
            rows = config.num_key_value_heads * size
            linear(f"{name}.{part}", rows, hidden, config.attention_bias)
        linear(f"{name}.o_proj", hidden, inner, config.attention_bias)

    def _recurrence(self, name: str) -> None:
        config, weights, heads = self._config, self._weights, self._config.mamba_n_heads
        hidden, inner = config.hidden_size, heads * config.mamba_d_head
        channels = inner + 2 * config.mamba_n_groups * config.mamba_d_state
        biased = config.mamba_proj_bias
        weights.linear(f"{name}.in_proj", inner + channels + heads, hidden, biased)
        weights.linear(f"{name}.out_proj", hidden, inner, biased)
        weights.tensors[f"{name}.conv1d.weight"] = weights.normal(channels, 1, config.mamba_d_conv)
        if config.mamba_conv_bias:
            weights.tensors[f"{name}.conv1d.bias"] = 0.1 * weights.normal(channels)
        weights.decay(f"{name}.A_log", f"{name}.dt_bias", heads)
        weights.tensors[f"{name}.D"] = torch.linspace(0.02, 0.06, heads)
        weights.norm(f"{name}.norm", inner)

    def _experts(self, name: str) -> None:
        config, weights, hidden = self._config, self._weights, self._config.hidden_size
        count, inner = config.num_local_experts, config.intermediate_size
        weights.linear(f"{name}.router.layer", count, hidden)
        up, down = weights.normal(count, 2 * inner, hidden), weights.normal(count, hidden, inner)
        weights.tensors[f"{name}.input_linear.weight"] = up / hidden**0.5
        weights.tensors[f"{name}.output_linear.weight"] = down / inner**0.5
