"""From a folder with a block draft's config.json and weights, named as SGLang names them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.precision import wide
from slotscope.engine.layers.rotary import Rotary

from .base import Model
from .block_draft import BlockDraft, Markov, attention_shape, layer_of
from .config import bad, check, derived, plain
from .error import ModelConfigError
from .load import read_json
from .weights import Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDraftConfig:
    """What config.json says. Names are those of published DFLASH folders."""

    vocab_size: int = 151936
    hidden_size: int = 2048
    intermediate_size: int = 6144
    num_hidden_layers: int = 5
    num_attention_heads: int = 32
    num_key_value_heads: int = 4
    head_dim: int = 128
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    attention_bias: bool = False
    block_size: int = 16
    markov_rank: int = 0  # above 0: DSPARK's head is there
    mask_token_id: int = derived(0)

    @staticmethod
    def read(config: dict[str, Any]) -> BlockDraftConfig:
        """Raises ModelConfigError for what is missing, malformed, or not built."""
        more = config.get("dflash_config", {})
        mask = more.get("mask_token_id") if isinstance(more, dict) else None
        if type(mask) is not int:
            raise bad("dflash_config", more, "an object with an integer `mask_token_id`")
        if (layers := more.get("target_layer_ids")) is not None:
            raise bad("dflash_config.target_layer_ids", layers, "absent: only the trunk's last")
        read = BlockDraftConfig(**plain(BlockDraftConfig, config), mask_token_id=mask)
        heads, kv_heads = read.num_attention_heads, read.num_key_value_heads
        checks = (
            ("num_attention_heads", heads, heads % kv_heads == 0, f"a multiple of {kv_heads}"),
            ("block_size", read.block_size, read.block_size > 1, "at least 2"),
            ("mask_token_id", mask, 0 <= mask < read.vocab_size, "a token of the vocabulary"),
        )
        check(read, checks, may_be_zero=("markov_rank", "mask_token_id"))
        return read


def load_block_draft(
    folder: Path, target: Model, dtype: torch.dtype, device: torch.device
) -> BlockDraft:
    """The draft in `folder`, for this target.

    Raises:
        ModelConfigError: config.json is missing, malformed, or not of a draft for this target.
        WeightsError: weights are missing, unreadable, or of the wrong shape.
    """
    config = BlockDraftConfig.read(read_json(folder / "config.json"))
    sizes, wanted = (config.vocab_size, config.hidden_size), (target.vocab_size, target.hidden_size)
    if sizes != wanted:
        raise ModelConfigError(
            f"{folder} drafts for a vocabulary of {sizes[0]} and a hidden size of {sizes[1]}, but "
            f"the model has {wanted[0]} and {wanted[1]}. It was made for another model. Give "
            "--speculative-draft-model-path the draft of this one."
        )
    return _Maker(config, Weights(folder, dtype, device)).draft()


class _Maker:
    """Layers from the tensors under their names."""

    def __init__(self, config: BlockDraftConfig, weights: Weights) -> None:
        self._config, self._weights = config, weights
        self._wide = wide(weights.dtype)

    def draft(self) -> BlockDraft:
        config, weights = self._config, self._weights
        hidden, rank = config.hidden_size, config.markov_rank
        made = BlockDraft(
            shape=attention_shape(
                config.num_hidden_layers, config.num_key_value_heads, config.head_dim
            ),
            block_size=config.block_size,
            mask_token=config.mask_token_id,
            fuse=weights.take("fc.weight", hidden, hidden),
            context_norm=self._norm("hidden_norm", hidden),
            layers=tuple(
                layer_of(
                    self._attention(f"layers.{number}.self_attn", number),
                    self._norm(f"layers.{number}.input_layernorm", hidden),
                    self._norm(f"layers.{number}.post_attention_layernorm", hidden),
                    self._mlp(f"layers.{number}.mlp"),
                )
                for number in range(config.num_hidden_layers)
            ),
            norm=self._norm("norm", hidden),
            rotary=Rotary.of(config.rope_theta, config.head_dim, weights.dtype, weights.device),
            markov=Markov(
                weights.take("markov_head.markov_w1.weight", config.vocab_size, rank),
                weights.take("markov_head.markov_w2.weight", config.vocab_size, rank),
            )
            if rank
            else None,
        )
        weights.check()
        return made

    def _norm(self, name: str, *size: int) -> Norm:
        return Norm(self._scale(name, *size), self._config.rms_norm_eps)

    def _scale(self, name: str, *size: int) -> Tensor:
        return self._weights.take(f"{name}.weight", *size, dtype=self._wide)

    def _attention(self, name: str, layer: int) -> Attention:
        config, take = self._config, self._weights.take
        heads, kv_heads, size = (
            config.num_attention_heads,
            config.num_key_value_heads,
            config.head_dim,
        )

        def joined(part: str, *columns: int) -> Tensor:
            rows = (("q", heads), ("k", kv_heads), ("v", kv_heads))
            return torch.cat([take(f"{name}.{n}_proj.{part}", r * size, *columns) for n, r in rows])

        query, key = self._scale(f"{name}.q_norm", size), self._scale(f"{name}.k_norm", size)
        scales = torch.cat((query.expand(heads, -1), key.expand(kv_heads, -1)))
        return Attention(
            project=joined("weight", config.hidden_size),
            bias=joined("bias") if config.attention_bias else None,
            norm=Norm(scales, config.rms_norm_eps),
            output=take(f"{name}.o_proj.weight", config.hidden_size, heads * size),
            output_bias=None,
            layer=layer,
            heads=heads,
            kv_heads=kv_heads,
            head_size=size,
            scale=size**-0.5,
            gated=False,
        )

    def _mlp(self, name: str) -> Mlp:
        take, hidden, inner = (
            self._weights.take,
            self._config.hidden_size,
            self._config.intermediate_size,
        )
        gate, up = (take(f"{name}.{part}_proj.weight", inner, hidden) for part in ("gate", "up"))
        return Mlp(torch.cat((gate, up)), take(f"{name}.down_proj.weight", hidden, inner))
