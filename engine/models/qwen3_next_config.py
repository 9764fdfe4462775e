"""What a Qwen3-Next config.json says. Names and defaults are transformers'."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from .error import ModelConfigError

LINEAR, FULL = "linear_attention", "full_attention"


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

    layer_types: tuple[str, ...] = field(default=(), metadata={"derived": True})
    mlp_only_layers: tuple[int, ...] = field(default=(), metadata={"derived": True})
    rope_theta: float = field(default=10000.0, metadata={"derived": True})
    rotary_size: int = field(default=64, metadata={"derived": True})
    eos_ids: tuple[int, ...] = field(default=(), metadata={"derived": True})

    @staticmethod
    def read(config: dict[str, Any]) -> Qwen3NextConfig:
        """From the parsed config.json. Raises ModelConfigError."""
        if config.get("quantization_config"):
            raise _bad("quantization_config", config["quantization_config"], "absent")
        plain: dict[str, Any] = {}
        for name, kind, default in _plain_fields():
            value = config.get(name, default)
            if kind is float and type(value) is int:
                value = float(value)
            if type(value) is not kind:
                raise _bad(name, value, f"of type {kind.__name__}")
            plain[name] = value
        theta, rotary_size = _rotary(config, plain["head_dim"])
        read = Qwen3NextConfig(
            **plain,
            layer_types=_layer_types(config, plain["num_hidden_layers"]),
            mlp_only_layers=_integers(config, "mlp_only_layers"),
            rope_theta=theta,
            rotary_size=rotary_size,
            eos_ids=_integers(config, "eos_token_id"),
        )
        read.check()
        return read

    def check(self) -> None:
        """Raise ModelConfigError if the sizes don't fit together."""
        for item in fields(self):
            value = getattr(self, item.name)
            if type(value) is int and item.name != "num_experts" and value < 1:
                raise _bad(item.name, value, "at least 1")
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        values, keys = self.linear_num_value_heads, self.linear_num_key_heads
        top_k, experts = self.num_experts_per_tok, self.num_experts
        for name, value, good, need in (
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
        ):
            if not good:
                raise _bad(name, value, need)

    def sparse(self, layer: int) -> bool:
        """Layer `layer` is a mixture of experts."""
        due = self.num_experts > 0 and (layer + 1) % self.decoder_sparse_step == 0
        return due and layer not in self.mlp_only_layers


def _plain_fields() -> list[tuple[str, type, Any]]:
    """(name, type, default) of what config.json spells in one way."""
    plain = [item for item in fields(Qwen3NextConfig) if not item.metadata.get("derived")]
    return [(item.name, type(item.default), item.default) for item in plain]


def _layer_types(config: dict[str, Any], layers: int) -> tuple[str, ...]:
    """`layer_types`, or every `full_attention_interval`-th layer with full attention."""
    types = config.get("layer_types")
    if types is None:
        interval = config.get("full_attention_interval", 4)
        if type(interval) is not int or interval < 1:
            raise _bad("full_attention_interval", interval, "an integer of at least 1")
        types = [LINEAR if (layer + 1) % interval else FULL for layer in range(layers)]
    if not isinstance(types, list) or len(types) != layers or set(types) - {LINEAR, FULL}:
        raise _bad("layer_types", types, f"a list of {layers} of {LINEAR!r} and {FULL!r}")
    return tuple(types)


def _rotary(config: dict[str, Any], head_dim: int) -> tuple[float, int]:
    """Theta, and how many values of a head turn. Old folders spread these over three fields."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise _bad("rope_parameters", rope, "an object")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise _bad("rope_type", kind, "'default': no scaling of positions is built")
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    part = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 0.25))
    for name, value in (("rope_theta", theta), ("partial_rotary_factor", part)):
        if type(value) not in (int, float):
            raise _bad(name, value, "a number")
    return float(theta), int(head_dim * part)


def _integers(config: dict[str, Any], name: str) -> tuple[int, ...]:
    """A list of integers, one integer, or null."""
    value = config.get(name)
    many = [] if value is None else value if isinstance(value, list) else [value]
    if any(type(one) is not int for one in many):
        raise _bad(name, value, "an integer, a list of integers, or null")
    return tuple(many)


def _bad(name: str, value: object, need: str) -> ModelConfigError:
    return ModelConfigError(
        f"config.json: {name} is {value!r}, but must be {need}. The model can't be loaded. "
        "Give a Qwen3-Next folder that this engine supports."
    )
