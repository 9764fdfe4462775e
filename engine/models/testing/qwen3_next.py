"""A small random Qwen3-Next."""

from __future__ import annotations

from typing import Any

import torch

from slotscope.engine.models.config import FULL
from slotscope.engine.models.qwen3_next_config import Qwen3NextConfig

from .random import RandomWeights

SMALL: dict[str, Any] = {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "full_attention_interval": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
    "num_experts_per_tok": 2,
    "num_experts": 4,
}
"""Every size differs from the others where it may, so that a confusion of two doesn't go unseen."""


def fill(config: dict[str, Any], weights: RandomWeights, head: bool) -> None:
    """All tensors of a model with this config.json."""
    _Filler(Qwen3NextConfig.read(config), weights).fill(head)


class _Filler:
    def __init__(self, config: Qwen3NextConfig, weights: RandomWeights) -> None:
        self._config, self._weights = config, weights

    def fill(self, head: bool) -> None:
        config, weights, hidden = self._config, self._weights, self._config.hidden_size
        weights.embeddings(config.vocab_size, hidden, tied=config.tie_word_embeddings)
        self._norm("model.norm", hidden)
        for layer, kind in enumerate(config.layer_types):
            self._block(f"model.layers.{layer}", kind == FULL, config.sparse(layer))
        if head:
            noise = 0.5 * weights.normal(hidden, hidden) / hidden**0.5
            weights.tensors["mtp.fc.weight"] = torch.cat((2 * torch.eye(hidden), noise), -1)
            for norm in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
                self._norm(f"mtp.{norm}", hidden)
            self._block("mtp.layers.0", True, config.num_experts > 0)

    def _block(self, name: str, full: bool, sparse: bool) -> None:
        config = self._config
        for norm in ("input_layernorm", "post_attention_layernorm"):
            self._norm(f"{name}.{norm}", config.hidden_size)
        if full:
            self._attention(f"{name}.self_attn")
        else:
            self._recurrence(f"{name}.linear_attn")
        if sparse:
            self._moe(f"{name}.mlp")
        else:
            self._weights.mlp(f"{name}.mlp", config.hidden_size, config.intermediate_size)

    def _attention(self, name: str) -> None:
        config, linear = self._config, self._weights.linear
        hidden, size = config.hidden_size, config.head_dim
        for part, rows in (
            ("q_proj", 2 * config.num_attention_heads * size),
            ("k_proj", config.num_key_value_heads * size),
            ("v_proj", config.num_key_value_heads * size),
        ):
            linear(f"{name}.{part}", rows, hidden, config.attention_bias)
        inner = config.num_attention_heads * size
        linear(f"{name}.o_proj", hidden, inner, config.attention_bias)
        self._norm(f"{name}.q_norm", size)
        self._norm(f"{name}.k_norm", size)

    def _recurrence(self, name: str) -> None:
        config, weights = self._config, self._weights
        hidden, heads = config.hidden_size, config.linear_num_value_heads
        keys = config.linear_num_key_heads * config.linear_key_head_dim
        values = heads * config.linear_value_head_dim
        weights.linear(f"{name}.in_proj_qkvz", 2 * keys + 2 * values, hidden)
        weights.linear(f"{name}.in_proj_ba", 2 * heads, hidden)
        weights.linear(f"{name}.out_proj", hidden, values)
        conv = weights.normal(2 * keys + values, 1, config.linear_conv_kernel_dim)
        weights.tensors[f"{name}.conv1d.weight"] = conv
        weights.decay(f"{name}.A_log", f"{name}.dt_bias", heads)
        weights.norm(f"{name}.norm", config.linear_value_head_dim)

    def _moe(self, name: str) -> None:
        config, weights, hidden = self._config, self._weights, self._config.hidden_size
        weights.linear(f"{name}.gate", config.num_experts, hidden)
        weights.linear(f"{name}.shared_expert_gate", 1, hidden)
        weights.mlp(f"{name}.shared_expert", hidden, config.shared_expert_intermediate_size)
        for expert in range(config.num_experts):
            weights.mlp(f"{name}.experts.{expert}", hidden, config.moe_intermediate_size)

    def _norm(self, name: str, size: int) -> None:
        """This family stores most norms around zero."""
        self._weights.norm(name, size, center=0)
