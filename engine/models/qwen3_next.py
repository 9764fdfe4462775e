"""Qwen3-Next: gated delta nets, every few layers full attention, experts, and an MTP head."""

from __future__ import annotations

from typing import Any

from slotscope.engine.memory import Shape

from .config import FULL, LINEAR
from .hybrid import Block, Head, Hybrid, Mixer
from .qwen3_next_config import Qwen3NextConfig
from .qwen3_next_weights import Qwen3NextWeights
from .weights import Weights

MTP = "mtp"
"""Under which name a checkpoint keeps the head that predicts one token further."""


def build(config: dict[str, Any], weights: Weights) -> Hybrid:
    """From config.json and the folder's weights."""
    read = Qwen3NextConfig.read(config)
    layers = Qwen3NextWeights(read, weights)
    sizes = (read.vocab_size, read.hidden_size)
    embedding = layers.matrix("model.embed_tokens", *sizes)
    unembedding = embedding if read.tie_word_embeddings else layers.matrix("lm_head", *sizes)
    blocks, norm = _blocks(read, layers), layers.norm("model.norm")
    head = _head(read, layers)
    return Hybrid(
        context_max=read.max_position_embeddings,
        eos_ids=read.eos_ids,
        memory_shape=_shape(read, with_head=head is not None),
        embedding=embedding,
        unembedding=unembedding,
        blocks=blocks,
        norm=norm,
        rotary=layers.rotary(),
        head=head,
    )


def _shape(config: Qwen3NextConfig, *, with_head: bool) -> Shape:
    full = config.layer_types.count(FULL)
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    values = config.linear_num_value_heads * config.linear_value_head_dim
    return Shape(
        attention_layers=full + with_head,
        kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        recurrent_layers=config.num_hidden_layers - full,
        conv_channels=2 * keys + values,
        conv_window=config.linear_conv_kernel_dim - 1,
        state_heads=config.linear_num_value_heads,
        key_dim=config.linear_key_head_dim,
        value_dim=config.linear_value_head_dim,
    )


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
    mixer: Mixer,
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
