"""What a Qwen3-Next config.json says. Names and defaults are transformers'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import FULL, LINEAR, bad, check, derived, integers, kinds, plain, rotary


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3NextConfig:
    """Sizes and switches. The last group is what config.json spells in several ways."""

    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 48
    num_attention_heads: int = 16
    num_key_value_heads: int = 2
    head_dim: int = 256
    hidden_act: str = "silu"
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    decoder_sparse_step: int = 1
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int = 512
    num_experts_per_tok: int = 10
    num_experts: int = 512
    norm_topk_prob: bool = True

    layer_types: tuple[str, ...] = derived(())
    mlp_only_layers: tuple[int, ...] = derived(())
    rope_theta: float = derived(10000.0)
    rotary_size: int = derived(64)
    eos_ids: tuple[int, ...] = derived(())

    @staticmethod
    def read(config: dict[str, Any]) -> Qwen3NextConfig:
        """From the parsed config.json. Raises ModelConfigError."""
        fields = plain(Qwen3NextConfig, config)
        theta, part = rotary(config, 0.25)
        read = Qwen3NextConfig(
            **fields,
            layer_types=_layer_types(config, fields["num_hidden_layers"]),
            mlp_only_layers=integers(config, "mlp_only_layers"),
            rope_theta=theta,
            rotary_size=int(fields["head_dim"] * part),
            eos_ids=integers(config, "eos_token_id"),
        )
        read.check()
        return read

    def check(self) -> None:
        """Raise ModelConfigError if the sizes don't fit together."""
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        values, keys = self.linear_num_value_heads, self.linear_num_key_heads
        top_k, experts = self.num_experts_per_tok, self.num_experts
        checks = (
            ("hidden_act", self.hidden_act, self.hidden_act == "silu", "'silu'"),
            (
                "num_attention_heads",
                heads,
                heads % kv_heads == 0,
                f"a multiple of {kv_heads}, num_key_value_heads",
            ),
            (
                "linear_num_value_heads",
                values,
                values % keys == 0,
                f"a multiple of {keys}, linear_num_key_heads",
            ),
            (
                "linear_conv_kernel_dim",
                self.linear_conv_kernel_dim,
                self.linear_conv_kernel_dim > 1,
                "at least 2",
            ),
            (
                "num_experts_per_tok",
                top_k,
                not experts or top_k <= experts,
                f"at most {experts}, num_experts",
            ),
            ("rope_theta", self.rope_theta, self.rope_theta > 0, "above 0"),
            (
                "partial_rotary_factor * head_dim",
                self.rotary_size,
                self.rotary_size % 2 == 0 and self.rotary_size <= self.head_dim,
                f"even and at most head_dim {self.head_dim}",
            ),
        )
        check(self, checks, may_be_zero=("num_experts",))

    def sparse(self, layer: int) -> bool:
        """Layer `layer` is a mixture of experts."""
        due = self.num_experts > 0 and (layer + 1) % self.decoder_sparse_step == 0
        return due and layer not in self.mlp_only_layers


def _layer_types(config: dict[str, Any], layers: int) -> tuple[str, ...]:
    """`layer_types`, or every `full_attention_interval`-th layer with full attention."""
    types = config.get("layer_types")
    if types is None:
        interval = config.get("full_attention_interval", 4)
        if type(interval) is not int or interval < 1:
            raise bad("full_attention_interval", interval, "an integer of at least 1")
        types = [LINEAR if (layer + 1) % interval else FULL for layer in range(layers)]
    return kinds("layer_types", types, layers, (LINEAR, FULL))
