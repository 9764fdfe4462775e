"""GraniteMoeHybrid (Granite 4 H): Mamba2, a few layers of attention, experts or dense layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.mamba2 import MAMBA2, Mamba2
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import Moe, SoftmaxRouter
from slotscope.engine.layers.norm import GroupedGatedNorm, Norm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.memory import Shape

from . import feed_forward
from .config import FULL, LINEAR
from .granitemoehybrid_config import GraniteMoeHybridConfig
from .hybrid import Block, Hybrid
from .weights import Weights


def build(config: dict[str, Any], weights: Weights) -> Hybrid:
    """From config.json and the folder's weights."""
    read = GraniteMoeHybridConfig.read(config)
    sizes = (read.vocab_size, read.hidden_size)
    layers = _Layers(read, weights)
    embedding = weights.matrix("model.embed_tokens", *sizes)
    unembedding = embedding if read.tie_word_embeddings else weights.matrix("lm_head", *sizes)
    theta = read.rope_theta
    return Hybrid(
        context_max=read.max_position_embeddings,
        eos_ids=read.eos_ids,
        memory_shape=_shape(read),
        embedding=embedding,
        unembedding=unembedding,
        blocks=layers.blocks(),
        norm=layers.norm("model.norm"),
        rotary=Rotary.of(theta, read.head_dim, weights.dtype, weights.device) if theta else None,
        embedding_scale=read.embedding_multiplier,
        logits_scale=1 / read.logits_scaling,
    )


def _channels(config: GraniteMoeHybridConfig) -> int:
    """What the convolution takes: inputs, B and C."""
    inner = config.mamba_n_heads * config.mamba_d_head
    return inner + 2 * config.mamba_n_groups * config.mamba_d_state


def _shape(config: GraniteMoeHybridConfig) -> Shape:
    full = config.layer_types.count(FULL)
    return Shape(
        attention_layers=full,
        kv_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        recurrent_layers=config.num_hidden_layers - full,
        conv_channels=_channels(config),
        conv_window=config.mamba_d_conv - 1,
        state_heads=config.mamba_n_heads,
        key_dim=config.mamba_d_state,
        value_dim=config.mamba_d_head,
    )


class _Layers:
    """Builds each kind of layer from the tensors under its name."""

    def __init__(self, config: GraniteMoeHybridConfig, weights: Weights) -> None:
        self._config, self._weights = config, weights

    def blocks(self) -> tuple[Block, ...]:
        """The decoder. Attention and recurrent layers are counted apart."""
        config, blocks = self._config, []
        counts = dict.fromkeys((FULL, LINEAR), 0)
        for number, kind in enumerate(config.layer_types):
            name, layer = f"model.layers.{number}", counts[kind]
            full = kind == FULL
            blocks.append(
                Block(
                    mixer_norm=self.norm(f"{name}.input_layernorm"),
                    mixer=self.attention(f"{name}.self_attn", layer)
                    if full
                    else self.recurrence(f"{name}.mamba", layer),
                    mlp_norm=self.norm(f"{name}.post_attention_layernorm"),
                    mlp=self.moe(name) if config.num_local_experts else self.shared(name),
                    residual_scale=config.residual_multiplier,
                )
            )
            counts[kind] += 1
        return tuple(blocks)

    def norm(self, name: str) -> Norm:
        """A norm over the hidden size."""
        return self._weights.norm(name, self._config.hidden_size, self._config.rms_norm_eps)

    def attention(self, name: str, layer: int) -> Attention:
        """Queries, keys and values have a projection each."""
        config, weights = self._config, self._weights
        hidden, size, biased = config.hidden_size, config.head_dim, config.attention_bias
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        rows = (("q_proj", heads * size), ("k_proj", kv_heads * size), ("v_proj", kv_heads * size))
        biases = [weights.take(f"{name}.{part}.bias", n) for part, n in rows] if biased else []
        return Attention(
            project=torch.cat([weights.matrix(f"{name}.{part}", n, hidden) for part, n in rows]),
            bias=torch.cat(biases) if biased else None,
            norm=None,
            output=weights.matrix(f"{name}.o_proj", hidden, heads * size),
            output_bias=weights.take(f"{name}.o_proj.bias", hidden) if biased else None,
            layer=layer,
            heads=heads,
            kv_heads=kv_heads,
            head_size=size,
            scale=config.attention_multiplier,
            gated=False,
        )

    def recurrence(self, name: str, layer: int) -> Mamba2:
        """All of a recurrent layer's inputs come from one projection."""
        config, weights = self._config, self._weights
        heads, hidden, channels = config.mamba_n_heads, config.hidden_size, _channels(config)
        inner, groups = heads * config.mamba_d_head, config.mamba_n_groups
        rows = inner + channels + heads
        taps = weights.take(f"{name}.conv1d.weight", channels, 1, config.mamba_d_conv)
        bias = weights.take(f"{name}.conv1d.bias", channels) if config.mamba_conv_bias else None
        norm = weights.take(f"{name}.norm.weight", inner, dtype=weights.wide)
        biased = config.mamba_proj_bias
        return Mamba2(
            project=weights.matrix(f"{name}.in_proj", rows, hidden),
            bias=weights.take(f"{name}.in_proj.bias", rows) if biased else None,
            recurrence=Recurrence(
                MAMBA2, taps[:, 0], bias, layer, skip=self._each_head(f"{name}.D")[:, None]
            ),
            rate=-self._each_head(f"{name}.A_log").exp(),
            step_bias=self._each_head(f"{name}.dt_bias"),
            norm=GroupedGatedNorm(norm.view(groups, -1), config.rms_norm_eps),
            output=weights.matrix(f"{name}.out_proj", hidden, inner),
            output_bias=weights.take(f"{name}.out_proj.bias", hidden) if biased else None,
            heads=heads,
            head_size=config.mamba_d_head,
            groups=groups,
            state_size=config.mamba_d_state,
        )

    def shared(self, name: str) -> Mlp:
        """The dense block, which every layer has; gate and up are one matrix."""
        config, matrix = self._config, self._weights.matrix
        hidden, inner = config.hidden_size, config.shared_intermediate_size
        return Mlp(
            matrix(f"{name}.shared_mlp.input_linear", 2 * inner, hidden),
            matrix(f"{name}.shared_mlp.output_linear", hidden, inner),
        )

    def moe(self, name: str) -> Moe:
        """Experts beside the dense block, stacked in one tensor.

        A softmax over the chosen experts' logits is one over all experts, made to sum to 1 again.
        """
        config, take = self._config, self._weights.take
        count, hidden, inner = (
            config.num_local_experts,
            config.hidden_size,
            config.intermediate_size,
        )
        place = f"{name}.block_sparse_moe"
        return Moe(
            router=SoftmaxRouter(
                take(f"{place}.router.layer.weight", count, hidden),
                config.num_experts_per_tok,
                normalize=True,
            ),
            experts=feed_forward.stacked(
                take(f"{place}.input_linear.weight", count, 2 * inner, hidden),
                take(f"{place}.output_linear.weight", count, hidden, inner),
            ),
            shared=self.shared(name),
        )

    def _each_head(self, name: str) -> Tensor:
        return self._weights.take(name, self._config.mamba_n_heads, dtype=self._weights.wide)
