"""The sizes of the bundled model, and its config.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from slotscope.engine.bundled.corpus import END_OF_TEXT, IM_END, VOCAB_SIZE

CONTEXT_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Field names are those of a Hugging Face `qwen3_next` config.

    Three linear layers and one with attention: each layer costs a CPU about a third of a
    millisecond a step whatever its width, so few wide layers serve faster than many narrow ones.
    """

    hidden_size: int = 192
    num_hidden_layers: int = 4
    full_attention_interval: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    partial_rotary_factor: float = 0.5
    rope_theta: float = 10000.0
    linear_num_key_heads: int = 4
    linear_num_value_heads: int = 8
    linear_key_head_dim: int = 32
    linear_value_head_dim: int = 32
    linear_conv_kernel_dim: int = 4
    num_experts: int = 4
    num_experts_per_tok: int = 2
    moe_intermediate_size: int = 128
    shared_expert_intermediate_size: int = 128
    vocab_size: int = VOCAB_SIZE
    rms_norm_eps: float = 1e-6

    @property
    def key_dim(self) -> int:
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def value_dim(self) -> int:
        return self.linear_num_value_heads * self.linear_value_head_dim

    def is_attention(self, layer: int) -> bool:
        return (layer + 1) % self.full_attention_interval == 0


def hugging_face(sizes: Sizes) -> dict[str, Any]:
    """The content of config.json."""
    layers = range(sizes.num_hidden_layers)
    return {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        **asdict(sizes),
        # The same in the form that transformers writes since version 5.
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": sizes.rope_theta,
            "partial_rotary_factor": sizes.partial_rotary_factor,
        },
        "layer_types": [
            "full_attention" if sizes.is_attention(i) else "linear_attention" for i in layers
        ],
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "intermediate_size": sizes.moe_intermediate_size,
        "hidden_act": "silu",
        "attention_bias": False,
        "max_position_embeddings": CONTEXT_MAX,
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": IM_END,
        "pad_token_id": END_OF_TEXT,
        "dtype": "bfloat16",
        "use_cache": True,
    }
