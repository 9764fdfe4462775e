"""Kimi-Linear: Kimi delta attention, every few layers latent attention, and experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from slotscope.engine.layers.kda import KDA, KimiDeltaAttention
from slotscope.engine.layers.mla import LatentAttention
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import GroupedRouter, Moe
from slotscope.engine.layers.norm import GatedNorm, Norm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.memory import Shape

from . import feed_forward
from .config import FULL, LINEAR
from .hybrid import Block, Hybrid
from .kimi_linear_config import SPARSE, KimiLinearConfig
from .weights import Weights

MIXTURE = "block_sparse_moe"
"""What a layer with experts calls them."""

LATENT_EPSILON = 1e-6
"""Of the latent's norm, which doesn't follow rms_norm_eps, in transformers and in the original."""


def build(config: dict[str, Any], weights: Weights) -> Hybrid:
    """From config.json and the folder's weights."""
    read = KimiLinearConfig.read(config)
    sizes = (read.vocab_size, read.hidden_size)
    layers = _Layers(read, weights)
    return Hybrid(
        context_max=read.max_position_embeddings,
        eos_ids=read.eos_ids,
        memory_shape=_shape(read),
        embedding=weights.matrix("model.embed_tokens", *sizes),
        unembedding=weights.matrix("lm_head", *sizes),
        blocks=layers.blocks(),
        norm=layers.norm("model.norm"),
    )


def _shape(config: KimiLinearConfig) -> Shape:
    heads, size = config.linear_num_heads, config.linear_head_dim
    full = config.layer_types.count(FULL)
    return Shape(
        attention_layers=full,
        kv_heads=1,
        head_dim=config.kv_lora_rank + config.qk_rope_head_dim,
        recurrent_layers=config.num_hidden_layers - full,
        conv_channels=3 * heads * size,
        conv_window=config.linear_conv_kernel_dim - 1,
        state_heads=heads,
        key_dim=size,
        value_dim=size,
        has_values=False,
    )


class _Layers:
    """Builds each kind of layer from the tensors under its name."""

    def __init__(self, config: KimiLinearConfig, weights: Weights) -> None:
        self._config, self._weights = config, weights

    def blocks(self) -> tuple[Block, ...]:
        """The decoder. Attention and recurrent layers are counted apart."""
        config, blocks = self._config, []
        counts = dict.fromkeys((FULL, LINEAR), 0)
        kinds = zip(config.layer_types, config.mlp_layer_types, strict=True)
        for number, (kind, mlp) in enumerate(kinds):
            name = f"model.layers.{number}"
            mixer = self.attention if kind == FULL else self.recurrence
            blocks.append(
                Block(
                    mixer_norm=self.norm(f"{name}.input_layernorm"),
                    mixer=mixer(f"{name}.self_attn", counts[kind]),
                    mlp_norm=self.norm(f"{name}.post_attention_layernorm"),
                    mlp=self.moe(f"{name}.{MIXTURE}") if mlp == SPARSE else self.dense(name),
                )
            )
            counts[kind] += 1
        return tuple(blocks)

    def norm(self, name: str) -> Norm:
        """A norm over the hidden size."""
        return self._weights.norm(name, self._config.hidden_size, self._config.rms_norm_eps)

    def attention(self, name: str, layer: int) -> LatentAttention:
        """kv_b_proj has, head by head, the rows of its key and then those of its value."""
        config, matrix = self._config, self._weights.matrix
        heads, hidden, rank = config.num_attention_heads, config.hidden_size, config.kv_lora_rank
        size, shared, value = config.qk_nope_head_dim, config.qk_rope_head_dim, config.v_head_dim
        up = matrix(f"{name}.kv_b_proj", heads * (size + value), rank)
        k_up, v_up = up.unflatten(0, (heads, -1)).split((size, value), 1)
        return LatentAttention(
            query=matrix(f"{name}.q_proj", heads * (size + shared), hidden),
            latent=matrix(f"{name}.kv_a_proj_with_mqa", rank + shared, hidden),
            norm=self._weights.norm(f"{name}.kv_a_layernorm", rank, LATENT_EPSILON),
            k_up=k_up,
            v_up=v_up,
            output=matrix(f"{name}.o_proj", hidden, heads * value),
            layer=layer,
        )

    def recurrence(self, name: str, layer: int) -> KimiDeltaAttention:
        """Each of query, key and value has a projection and a convolution of its own."""
        config, weights = self._config, self._weights
        heads, size, hidden = config.linear_num_heads, config.linear_head_dim, config.hidden_size
        inner, kernel, matrix = heads * size, config.linear_conv_kernel_dim, weights.matrix
        rows = (
            *((f"{part}_proj", inner) for part in "qkv"),
            ("f_a_proj", size),
            ("g_a_proj", size),
            ("b_proj", heads),
        )
        taps = torch.cat(
            [weights.take(f"{name}.{p}_conv1d.weight", inner, 1, kernel) for p in "qkv"]
        )
        bias = weights.take(f"{name}.dt_bias", inner, dtype=weights.wide)
        return KimiDeltaAttention(
            project=torch.cat([matrix(f"{name}.{part}", count, hidden) for part, count in rows]),
            recurrence=Recurrence(KDA, taps[:, 0], None, layer),
            decay=matrix(f"{name}.f_b_proj", inner, size),
            rate=self._rate(f"{name}.A_log"),
            rate_bias=bias.view(heads, size),
            gate=matrix(f"{name}.g_b_proj", inner, size),
            norm=GatedNorm(
                weights.take(f"{name}.o_norm.weight", size, dtype=weights.wide),
                config.rms_norm_eps,
                torch.sigmoid,
            ),
            output=matrix(f"{name}.o_proj", hidden, inner),
            heads=heads,
            size=size,
        )

    def dense(self, name: str) -> Mlp:
        """A dense layer, under its own name, or as transformers saves it, under a mixture's."""
        saved = f"{name}.{MIXTURE}"
        place = saved if f"{saved}.gate_proj.weight" in self._weights else f"{name}.mlp"
        return self.mlp(place, self._config.intermediate_size)

    def mlp(self, name: str, inner: int) -> Mlp:
        """A dense block, or a mixture's shared expert."""
        return feed_forward.mlp(self._weights, name, self._config.hidden_size, inner)

    def moe(self, name: str) -> Moe:
        """A mixture; its experts call their matrices w1 (gate), w3 (up) and w2 (down)."""
        config, weights = self._config, self._weights
        count, hidden = config.num_local_experts, config.hidden_size
        inner, names = config.moe_intermediate_size, ("w1", "w3", "w2")
        router, bias = f"{name}.gate.weight", f"{name}.gate.e_score_correction_bias"
        return Moe(
            router=GroupedRouter(
                project=weights.take(router, count, hidden, dtype=weights.wide),
                bias=weights.take(bias, count, dtype=weights.wide),
                groups=config.n_group,
                top_groups=config.topk_group,
                top_k=config.num_experts_per_tok,
                normalize=config.norm_topk_prob,
                scale=config.routed_scaling_factor,
            ),
            experts=feed_forward.experts(weights, f"{name}.experts", count, hidden, inner, names),
            shared=self.mlp(f"{name}.shared_experts", inner * config.n_shared_experts),
        )

    def _rate(self, name: str) -> Tensor:
        """[heads, 1] from A_log, which is stored with dimensions around its heads."""
        heads = self._config.linear_num_heads
        stored = self._weights.take(name, 1, 1, heads, 1, dtype=self._weights.wide)
        return -stored.exp().view(heads, 1)
