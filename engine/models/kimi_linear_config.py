"""What a Kimi-Linear config.json says. Names and defaults are transformers'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import FULL, LINEAR, bad, check, derived, integers, kinds, plain

DENSE, SPARSE = "dense", "sparse"

ALIASES = {
    "model_max_length": "max_position_embeddings",
    "moe_renormalize": "norm_topk_prob",
    "num_expert_group": "n_group",
    "num_experts": "num_local_experts",
    "num_experts_per_token": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts",
}
"""How folders on the Hub spell fields that transformers calls otherwise."""

NEEDED: dict[str, tuple[object, ...]] = {
    "hidden_act": ("silu",),
    "q_lora_rank": (None,),
    "attention_bias": (False,),
    "mla_use_nope": (True,),
    "moe_router_activation_func": ("sigmoid",),
    "moe_layer_freq": (1,),
    "num_nextn_predict_layers": (0, None),
    "routed_expert_hidden_size": (None,),
    "tie_word_embeddings": (False,),
}
"""What these must be where they are there, as in Kimi-Linear-48B. Nothing else is built."""

LINEAR_NEEDED: dict[str, tuple[object, ...]] = {
    "gate_lower_bound": (None,),
    "use_full_rank_gate": (False, None),
}
"""The same inside linear_attn_config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiLinearConfig:
    """Sizes and switches. The last group is what config.json spells in several ways."""

    vocab_size: int = 163840
    hidden_size: int = 2304
    intermediate_size: int = 9216
    moe_intermediate_size: int = 1024
    num_hidden_layers: int = 27
    num_attention_heads: int = 32
    n_shared_experts: int = 1
    routed_scaling_factor: float = 2.446
    kv_lora_rank: int = 512
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128
    qk_nope_head_dim: int = 128
    n_group: int = 1
    topk_group: int = 1
    num_experts_per_tok: int = 8
    norm_topk_prob: bool = True
    max_position_embeddings: int = 1048576
    rms_norm_eps: float = 1e-5
    num_local_experts: int = 256

    linear_head_dim: int = derived(128)
    linear_num_heads: int = derived(32)
    linear_conv_kernel_dim: int = derived(4)
    layer_types: tuple[str, ...] = derived(())
    mlp_layer_types: tuple[str, ...] = derived(())
    eos_ids: tuple[int, ...] = derived(())

    @staticmethod
    def read(config: dict[str, Any]) -> KimiLinearConfig:
        """From the parsed config.json. Raises ModelConfigError."""
        _refuse(config, NEEDED, "")
        renamed = {ALIASES.get(name, name): value for name, value in config.items()}
        fields = plain(KimiLinearConfig, renamed)
        layers = fields["num_hidden_layers"]
        linear = renamed.get("linear_attn_config", {})
        if not isinstance(linear, dict):
            raise bad("linear_attn_config", linear, "an object")
        _refuse(linear, LINEAR_NEEDED, "linear_attn_config.")
        read = KimiLinearConfig(
            **fields,
            linear_head_dim=_size(renamed, "linear_head_dim", linear, "head_dim", 128),
            linear_num_heads=_size(renamed, "linear_num_heads", linear, "num_heads", 32),
            linear_conv_kernel_dim=_size(
                renamed, "linear_conv_kernel_dim", linear, "short_conv_kernel_size", 4
            ),
            layer_types=_layer_types(renamed, linear, layers),
            mlp_layer_types=_mlp_layer_types(renamed, layers),
            eos_ids=integers(renamed, "eos_token_id"),
        )
        read.check(renamed)
        return read

    def check(self, config: dict[str, Any]) -> None:
        """Raise ModelConfigError if the sizes don't fit together."""
        heads, experts, groups = self.num_attention_heads, self.num_local_experts, self.n_group
        kv_heads, kernel = config.get("num_key_value_heads"), self.linear_conv_kernel_dim
        top_groups, top_k = self.topk_group, self.num_experts_per_tok
        reachable = experts // groups * top_groups if groups > 0 else 0
        checks = (
            (
                "num_key_value_heads",
                kv_heads,
                kv_heads in (None, heads),
                f"{heads}, num_attention_heads: all heads read one latent vector",
            ),
            ("linear_conv_kernel_dim", kernel, kernel > 1, "at least 2"),
            (
                "n_group",
                groups,
                experts % max(groups, 1) == 0,
                f"a divisor of {experts}, the number of experts",
            ),
            ("topk_group", top_groups, top_groups <= groups, f"at most {groups}, n_group"),
            (
                "n_group",
                groups,
                top_groups == groups or experts // groups > 1,
                f"at most {experts // 2}: a group is judged by its two best of {experts} experts",
            ),
            (
                "num_experts_per_tok",
                top_k,
                top_k <= reachable,
                f"at most {reachable}, the experts of the best groups",
            ),
        )
        check(self, checks)


def _refuse(config: dict[str, Any], needed: dict[str, tuple[object, ...]], prefix: str) -> None:
    """Raise ModelConfigError for what isn't built."""
    for name, allowed in needed.items():
        if name in config and config[name] not in allowed:
            raise bad(prefix + name, config[name], f"{allowed[0]!r}: nothing else is built")


def _size(
    config: dict[str, Any], name: str, linear: dict[str, Any], inner: str, default: int
) -> int:
    """An integer that stands in linear_attn_config or beside it."""
    value = linear.get(inner, config.get(name, default))
    if type(value) is not int:
        raise bad(f"linear_attn_config.{inner}", value, "of type int")
    return value


def _layer_types(config: dict[str, Any], linear: dict[str, Any], layers: int) -> tuple[str, ...]:
    """`layer_types`, or the layers that linear_attn_config counts from one, or every fourth."""
    types = config.get("layer_types")
    if types is None and "kda_layers" in linear:
        kda = set(integers(linear, "kda_layers"))
        full = set(integers(linear, "full_attn_layers"))
        if kda & full or kda | full != set(range(1, layers + 1)):
            raise bad(
                "linear_attn_config",
                linear,
                f"kda_layers and full_attn_layers that name each of 1 to {layers} once",
            )
        types = [LINEAR if layer in kda else FULL for layer in range(1, layers + 1)]
    if types is None:
        types = [FULL if layer and layer % 4 == 0 else LINEAR for layer in range(layers)]
    return kinds("layer_types", types, layers, (LINEAR, FULL))


def _mlp_layer_types(config: dict[str, Any], layers: int) -> tuple[str, ...]:
    """`mlp_layer_types`, or dense layers first and then mixtures."""
    types = config.get("mlp_layer_types")
    if types is None:
        dense = config.get("first_k_dense_replace", 1)
        if type(dense) is not int:
            raise bad("first_k_dense_replace", dense, "of type int")
        types = [DENSE if layer < dense else SPARSE for layer in range(layers)]
    return kinds("mlp_layer_types", types, layers, (DENSE, SPARSE))
