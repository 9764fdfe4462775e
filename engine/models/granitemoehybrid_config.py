"""What a GraniteMoeHybrid config.json says. Names and defaults are transformers'."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from .config import FULL, LINEAR, bad, check, derived, integers, kinds, plain, rotary

JSON_INFINITY = {"__float__": "Infinity"}
"""How transformers writes a number that JSON lacks."""

LEGACY = {"mamba": LINEAR, "attention": FULL}
"""How folders from before transformers 5 spell the kinds of layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteMoeHybridConfig:
    """Sizes and switches. The last group is what config.json leaves to be worked out."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008  # of an expert
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    embedding_multiplier: float = 1.0
    logits_scaling: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    shared_intermediate_size: int = 1024
    mamba_n_heads: int = 128
    mamba_n_groups: int = 1
    mamba_d_state: int = 256
    mamba_d_conv: int = 4
    mamba_expand: int = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False

    num_key_value_heads: int = derived(32)
    head_dim: int = derived(128)
    mamba_d_head: int = derived(64)
    layer_types: tuple[str, ...] = derived(())
    rope_theta: float | None = derived(None)  # None: no positions
    eos_ids: tuple[int, ...] = derived(())

    @staticmethod
    def read(config: dict[str, Any]) -> GraniteMoeHybridConfig:
        """From the parsed config.json. Raises ModelConfigError."""
        fields = plain(GraniteMoeHybridConfig, config)
        _refuse(config)
        heads, layers = max(fields["num_attention_heads"], 1), fields["num_hidden_layers"]
        inner = fields["mamba_expand"] * fields["hidden_size"]
        d_head = config.get("mamba_d_head", "auto")
        types = config.get("layer_types", config.get("layers_block_type"))
        if isinstance(types, list):
            types = [LEGACY.get(kind, kind) if isinstance(kind, str) else kind for kind in types]
        kv_heads = config.get("num_key_value_heads")
        with_rope = config.get("position_embedding_type") == "rope"
        read = GraniteMoeHybridConfig(
            **fields,
            num_key_value_heads=heads if kv_heads is None else kv_heads,
            head_dim=config.get("head_dim", fields["hidden_size"] // heads),
            mamba_d_head=inner // max(fields["mamba_n_heads"], 1) if d_head == "auto" else d_head,
            layer_types=kinds(
                "layer_types", [LINEAR] * layers if types is None else types, layers, (LINEAR, FULL)
            ),
            rope_theta=rotary(config, 1.0)[0] if with_rope else None,
            eos_ids=integers(config, "eos_token_id"),
        )
        read.check()
        return read

    def check(self) -> None:
        """Raise ModelConfigError if the sizes don't fit together."""
        heads, kv_heads, size = self.num_attention_heads, self.num_key_value_heads, self.head_dim
        recurrent, groups, d_head = self.mamba_n_heads, self.mamba_n_groups, self.mamba_d_head
        top_k, experts = self.num_experts_per_tok, self.num_local_experts
        inner = self.mamba_expand * self.hidden_size
        for name, value in (
            ("num_key_value_heads", kv_heads),
            ("head_dim", size),
            ("mamba_d_head", d_head),
        ):
            if type(value) is not int or value < 1:
                raise bad(name, value, "an integer of at least 1")
        checks = (
            ("hidden_act", self.hidden_act, self.hidden_act == "silu", "'silu'"),
            (
                "num_attention_heads",
                heads,
                heads % kv_heads == 0,
                f"a multiple of {kv_heads}, num_key_value_heads",
            ),
            (
                "head_dim",
                size,
                self.rope_theta is None or size % 2 == 0,
                "even, since positions turn pairs",
            ),
            (
                "mamba_d_head",
                d_head,
                d_head * recurrent == inner,
                f"{inner}, mamba_expand * hidden_size, over {recurrent}, mamba_n_heads",
            ),
            (
                "mamba_n_heads",
                recurrent,
                recurrent % max(groups, 1) == 0,
                f"a multiple of {groups}, mamba_n_groups",
            ),
            ("mamba_d_conv", self.mamba_d_conv, self.mamba_d_conv > 1, "at least 2"),
            (
                "num_experts_per_tok",
                top_k,
                not experts or top_k <= experts,
                f"at most {experts}, num_local_experts",
            ),
            ("logits_scaling", self.logits_scaling, self.logits_scaling != 0, "other than 0"),
        )
        no_experts = () if experts else ("num_experts_per_tok",)
        check(self, checks, may_be_zero=("num_local_experts", "intermediate_size", *no_experts))


def _refuse(config: dict[str, Any]) -> None:
    """Raise ModelConfigError for what isn't built."""
    positions = config.get("position_embedding_type")
    if positions not in (None, "nope", "rope"):
        raise bad("position_embedding_type", positions, "'rope', 'nope' or null")
    limit = config.get("time_step_limit")
    if limit not in (None, [0, inf], [0, JSON_INFINITY]):
        raise bad("time_step_limit", limit, "[0.0, Infinity]: time steps are not clamped")
