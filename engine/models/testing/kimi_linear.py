"""A small random Kimi-Linear, its config.json spelled as on the Hub."""

from __future__ import annotations

from typing import Any

from slotscope.engine.models.config import FULL
from slotscope.engine.models.kimi_linear_config import SPARSE, KimiLinearConfig

from .random import RandomWeights

SMALL: dict[str, Any] = {
    "model_type": "kimi_linear",
    "architectures": ["KimiLinearForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "moe_intermediate_size": 40,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "model_max_length": 4096,
    "kv_lora_rank": 24,
    "q_lora_rank": None,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 20,
    "mla_use_nope": True,
    "linear_attn_config": {
        "kda_layers": [1, 3],
        "full_attn_layers": [2, 4],
        "num_heads": 3,
        "head_dim": 16,
        "short_conv_kernel_size": 4,
    },
    "first_k_dense_replace": 1,
    "num_experts": 8,
    "num_experts_per_token": 2,
    "num_shared_experts": 2,
    "num_expert_group": 4,
    "topk_group": 2,
    "moe_renormalize": True,
    "moe_router_activation_func": "sigmoid",
    "routed_scaling_factor": 1.5,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""Every size differs from the others where it may, so that a confusion of two doesn't go unseen."""


def fill(config: dict[str, Any], weights: RandomWeights, head: bool) -> None:
    """All tensors of a model with this config.json. The family has no MTP head."""
    _Filler(KimiLinearConfig.read(config), weights).fill()


class _Filler:
    def __init__(self, config: KimiLinearConfig, weights: RandomWeights) -> None:
        self._config, self._weights = config, weights

    def fill(self) -> None:
        config, weights = self._config, self._weights
        weights.embeddings(config.vocab_size, config.hidden_size, tied=False)
        weights.norm("model.norm", config.hidden_size)
        kinds = zip(config.layer_types, config.mlp_layer_types, strict=True)
        for layer, (kind, mlp) in enumerate(kinds):
            self._block(f"model.layers.{layer}", kind == FULL, mlp == SPARSE)

    def _block(self, name: str, full: bool, sparse: bool) -> None:
        config, weights = self._config, self._weights
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights.norm(f"{name}.{norm}", config.hidden_size)
        if full:
            self._attention(f"{name}.self_attn")
        else:
            self._recurrence(f"{name}.self_attn")
        if sparse:
            self._moe(f"{name}.block_sparse_moe")
        else:
            weights.mlp(f"{name}.mlp", config.hidden_size, config.intermediate_size)

    def _attention(self, name: str) -> None:
        config, linear = self._config, self._weights.linear
        heads, hidden, rank = config.num_attention_heads, config.hidden_size, config.kv_lora_rank
        size, shared, value = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        linear(f"{name}.q_proj", heads * (size + shared), hidden)
        linear(f"{name}.kv_a_proj_with_mqa", rank + shared, hidden)
        self._weights.norm(f"{name}.kv_a_layernorm", rank)
        linear(f"{name}.kv_b_proj", heads * (size + value), rank)
        linear(f"{name}.o_proj", hidden, heads * value)

    def _recurrence(self, name: str) -> None:
        config, weights = self._config, self._weights
        hidden, heads, size = config.hidden_size, config.linear_num_heads, config.linear_head_dim
        inner, kernel = heads * size, config.linear_conv_kernel_dim
        for part in "qkv":
            weights.linear(f"{name}.{part}_proj", inner, hidden)
            weights.tensors[f"{name}.{part}_conv1d.weight"] = weights.normal(inner, 1, kernel)
        for part in "fg":
            weights.linear(f"{name}.{part}_a_proj", size, hidden)
            weights.linear(f"{name}.{part}_b_proj", inner, size)
        weights.linear(f"{name}.b_proj", heads, hidden)
        rate = f"{name}.A_log"
        weights.decay(rate, f"{name}.dt_bias", heads, size)
        weights.tensors[rate] = weights.tensors[rate].view(1, 1, heads, 1)
        weights.norm(f"{name}.o_norm", size)
        weights.linear(f"{name}.o_proj", hidden, inner)

    def _moe(self, name: str) -> None:
        config, weights, hidden = self._config, self._weights, self._config.hidden_size
        experts, inner = config.num_local_experts, config.moe_intermediate_size
        weights.linear(f"{name}.gate", experts, hidden)
        weights.tensors[f"{name}.gate.e_score_correction_bias"] = 0.2 * weights.normal(experts)
        weights.mlp(f"{name}.shared_experts", hidden, inner * config.n_shared_experts)
        for expert in range(experts):
            weights.mlp(f"{name}.experts.{expert}", hidden, inner, ("w1", "w3", "w2"))
