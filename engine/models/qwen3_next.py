"""Qwen3-Next: gated delta nets, every few layers full attention, experts, and an MTP head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from slotscope.engine.forward import Forward
from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.gdn import GatedDeltaNet
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import Moe
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.plan import CHUNK, Plan
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape

from .error import ModelError
from .qwen3_next_config import FULL, LINEAR, Qwen3NextConfig
from .qwen3_next_weights import Qwen3NextWeights
from .weights import Weights

MTP = "mtp"
"""Under which name a checkpoint keeps the head that predicts one token further."""


@dataclass(frozen=True, slots=True)
class Block:
    """One decoder layer: a mixer over tokens, a feed-forward, each behind a norm and added."""

    mixer_norm: Norm
    mixer: Attention | GatedDeltaNet
    mlp_norm: Norm
    mlp: Mlp | Moe

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]."""
        x = x + self.mixer(self.mixer_norm(x), plan, memory)
        return x + self.mlp(self.mlp_norm(x))


@dataclass(frozen=True, slots=True)
class Head:
    """The MTP head: from a token's successor and its hidden state to the token after that."""

    embedding_norm: Norm
    hidden_norm: Norm
    fuse: Tensor  # [hidden, 2 * hidden]: the embedding first, then the hidden state
    block: Block
    norm: Norm


class Qwen3Next:
    """Implements `Model`."""

    state_chunk = CHUNK

    def __init__(self, config: Qwen3NextConfig, weights: Qwen3NextWeights) -> None:
        self.config = config
        self.vocab_size, self.hidden_size = config.vocab_size, config.hidden_size
        self.context_max, self.eos_ids = config.max_position_embeddings, config.eos_ids
        sizes = (config.vocab_size, config.hidden_size)
        self._embedding = weights.matrix("model.embed_tokens", *sizes)
        tied = config.tie_word_embeddings
        self._unembedding = self._embedding if tied else weights.matrix("lm_head", *sizes)
        self._rotary = weights.rotary()
        self._workspace = Workspace()
        self._blocks = _blocks(config, weights)
        self._norm = weights.norm("model.norm")
        self._head = _head(config, weights)
        self.has_draft = self._head is not None

    @staticmethod
    def build(config: dict[str, Any], weights: Weights) -> Qwen3Next:
        """From config.json and the folder's weights."""
        read = Qwen3NextConfig.read(config)
        return Qwen3Next(read, Qwen3NextWeights(read, weights))

    def shape(self) -> Shape:
        """What memory it needs. The MTP layer's keys and values are the last attention layer's."""
        config = self.config
        full = config.layer_types.count(FULL)
        keys = config.linear_num_key_heads * config.linear_key_head_dim
        values = config.linear_num_value_heads * config.linear_value_head_dim
        return Shape(
            attention_layers=full + self.has_draft,
            kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
            recurrent_layers=config.num_hidden_layers - full,
            conv_channels=2 * keys + values,
            conv_window=config.linear_conv_kernel_dim - 1,
            state_heads=config.linear_num_value_heads,
            key_dim=config.linear_key_head_dim,
            value_dim=config.linear_value_head_dim,
        )

    @torch.inference_mode()
    def forward(self, batch: Forward, memory: Memory) -> Tensor:
        """Run the trunk. Returns hidden [T, H], normed."""
        x = embedding(batch.tokens, self._embedding)
        plan = Plan.of(batch, self._rotary, x.dtype, self._workspace)
        for block in self._blocks:
            x = block(x, plan, memory)
        return self._norm(x)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[R, H] to [R, vocab]."""
        return linear(hidden, self._unembedding)

    @torch.inference_mode()
    def draft(self, batch: Forward, memory: Memory, hidden: Tensor) -> Tensor:
        """One pass of the MTP head, fed with next tokens. Returns hidden [T, H], normed."""
        head = self._head
        if head is None:
            raise ModelError(
                "draft was called, but this folder has no mtp.* weights. "
                "Ask `has_draft` before choosing NEXTN."
            )
        next_ = head.embedding_norm(embedding(batch.tokens, self._embedding))
        x = linear(torch.cat((next_, head.hidden_norm(hidden)), -1), head.fuse)
        plan = Plan.of(batch, self._rotary, x.dtype, self._workspace)
        return head.norm(head.block(x, plan, memory))


def _blocks(config: Qwen3NextConfig, weights: Qwen3NextWeights) -> tuple[Block, ...]:
    """The trunk. Attention and recurrent layers are counted apart: each kind has its own memory."""
    blocks: list[Block] = []
    counts = dict.fromkeys((FULL, LINEAR), 0)
    for number, kind in enumerate(config.layer_types):
        name = f"model.layers.{number}"
        make = weights.attention if kind == FULL else weights.recurrence
        sparse = config.sparse(number)
        blocks.append(_block(name, make(name, counts[kind]), sparse, config, weights))
        counts[kind] += 1
    return tuple(blocks)


def _block(
    name: str,
    mixer: Attention | GatedDeltaNet,
    sparse: bool,
    config: Qwen3NextConfig,
    weights: Qwen3NextWeights,
) -> Block:
    mlp = f"{name}.mlp"
    return Block(
        mixer_norm=weights.norm(f"{name}.input_layernorm"),
        mixer=mixer,
        mlp_norm=weights.norm(f"{name}.post_attention_layernorm"),
        mlp=weights.moe(mlp) if sparse else weights.mlp(mlp, config.intermediate_size),
    )


def _head(config: Qwen3NextConfig, weights: Qwen3NextWeights) -> Head | None:
    """None where the folder has no mtp.* weights.

    config.json doesn't say whether its layer is a mixture: the checkpoint does.
    """
    if f"{MTP}.fc.weight" not in weights:
        return None
    name = f"{MTP}.layers.0"
    attention = weights.attention(name, config.layer_types.count(FULL))
    sparse = f"{name}.mlp.gate.weight" in weights
    return Head(
        embedding_norm=weights.norm(f"{MTP}.pre_fc_norm_embedding"),
        hidden_norm=weights.norm(f"{MTP}.pre_fc_norm_hidden"),
        fuse=weights.matrix(f"{MTP}.fc", config.hidden_size, 2 * config.hidden_size),
        block=_block(name, attention, sparse, config, weights),
        norm=weights.norm(f"{MTP}.norm"),
    )
