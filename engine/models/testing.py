"""Small random checkpoints, for tests of whatever needs a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from .config import FULL
from .qwen3_next_config import Qwen3NextConfig

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


def make_checkpoint(path: Path, *, seed: int = 0, head: bool = True, **config: Any) -> Path:
    """Write a random Qwen3-Next folder to `path` (made if absent) and return it.

    The recurrent state is visible: it fades over some hundred tokens and weighs as much as the
    other layers, so one that lacks a token gives other greedy tokens within the next few. Drafts
    of the MTP head are accepted now and then, every third or fourth, so verifies take any step.

    Args:
        seed: of the weights.
        head: with an MTP head.
        config: fields of config.json in place of `SMALL`'s.
    """
    merged = {**SMALL, **config}
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(merged, indent=2))
    make = _Random(Qwen3NextConfig.read(merged), torch.Generator().manual_seed(seed))
    save_file(make.checkpoint(head), path / "model.safetensors", {"format": "pt"})
    return path


class _Random:
    """Random tensors under a checkpoint's names, float32."""

    def __init__(self, config: Qwen3NextConfig, generator: torch.Generator) -> None:
        self._config, self._generator = config, generator
        self._tensors: dict[str, Tensor] = {}

    def checkpoint(self, head: bool) -> dict[str, Tensor]:
        """The whole model."""
        config = self._config
        hidden = config.hidden_size
        # Trunk and MTP head agree where the last token decides. Larger, it would hide the state.
        self._tensors["model.embed_tokens.weight"] = 2 * self._normal(config.vocab_size, hidden)
        if not config.tie_word_embeddings:
            self._linear("lm_head", config.vocab_size, hidden)
        self._norm("model.norm", hidden)
        for layer, kind in enumerate(config.layer_types):
            self._block(f"model.layers.{layer}", kind == FULL, config.sparse(layer))
        if head:
            noise = 0.5 * self._normal(hidden, hidden) / hidden**0.5
            self._tensors["mtp.fc.weight"] = torch.cat((2 * torch.eye(hidden), noise), -1)
            for norm in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
                self._norm(f"mtp.{norm}", hidden)
            self._block("mtp.layers.0", True, config.num_experts > 0)
        return self._tensors

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
            self._mlp(f"{name}.mlp", config.intermediate_size)

    def _attention(self, name: str) -> None:
        config = self._config
        hidden, size = config.hidden_size, config.head_dim
        for part, rows in (
            ("q_proj", 2 * config.num_attention_heads * size),
            ("k_proj", config.num_key_value_heads * size),
            ("v_proj", config.num_key_value_heads * size),
        ):
            self._linear(f"{name}.{part}", rows, hidden, config.attention_bias)
        inner = config.num_attention_heads * size
        self._linear(f"{name}.o_proj", hidden, inner, config.attention_bias)
        self._norm(f"{name}.q_norm", size)
        self._norm(f"{name}.k_norm", size)

    def _recurrence(self, name: str) -> None:
        config = self._config
        hidden, heads = config.hidden_size, config.linear_num_value_heads
        keys = config.linear_num_key_heads * config.linear_key_head_dim
        values = heads * config.linear_value_head_dim
        self._linear(f"{name}.in_proj_qkvz", 2 * keys + 2 * values, hidden)
        self._linear(f"{name}.in_proj_ba", 2 * heads, hidden)
        self._linear(f"{name}.out_proj", hidden, values)
        conv = self._normal(2 * keys + values, 1, config.linear_conv_kernel_dim)
        self._tensors[f"{name}.conv1d.weight"] = conv
        # The decay of a token is exp(-exp(A_log) softplus(a + dt_bias)): about 0.97 to 0.998 here.
        steps = torch.linspace(0, 1, heads)
        self._tensors[f"{name}.A_log"] = steps - 1
        self._tensors[f"{name}.dt_bias"] = -5 + 2 * steps
        self._tensors[f"{name}.norm.weight"] = 1 + 0.1 * self._normal(config.linear_value_head_dim)

    def _moe(self, name: str) -> None:
        config = self._config
        self._linear(f"{name}.gate", config.num_experts, config.hidden_size)
        self._linear(f"{name}.shared_expert_gate", 1, config.hidden_size)
        self._mlp(f"{name}.shared_expert", config.shared_expert_intermediate_size)
        for expert in range(config.num_experts):
            self._mlp(f"{name}.experts.{expert}", config.moe_intermediate_size)

    def _mlp(self, name: str, inner: int) -> None:
        hidden = self._config.hidden_size
        self._linear(f"{name}.gate_proj", inner, hidden)
        self._linear(f"{name}.up_proj", inner, hidden)
        self._linear(f"{name}.down_proj", hidden, inner)

    def _linear(self, name: str, rows: int, columns: int, biased: bool = False) -> None:
        """Outputs as large as inputs."""
        self._tensors[f"{name}.weight"] = self._normal(rows, columns) / columns**0.5
        if biased:
            self._tensors[f"{name}.bias"] = 0.1 * self._normal(rows)

    def _norm(self, name: str, size: int) -> None:
        self._tensors[f"{name}.weight"] = 0.1 * self._normal(size)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self._generator)
