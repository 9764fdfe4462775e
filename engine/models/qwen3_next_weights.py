"""From the tensors of a Qwen3-Next checkpoint to layers.

Projections that read the same input become one matrix, with rows in the order that the layers want.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.gdn import GDN, GatedDeltaNet
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.moe import Moe, SoftmaxRouter
from slotscope.engine.layers.norm import GatedNorm, Norm
from slotscope.engine.layers.recurrence import Recurrence
from slotscope.engine.layers.rotary import Rotary

from . import feed_forward
from .qwen3_next_config import Qwen3NextConfig
from .weights import Weights


class Qwen3NextWeights:
    """Builds each kind of layer from the tensors under its name."""

    def __init__(self, config: Qwen3NextConfig, weights: Weights) -> None:
        self._config, self._weights = config, weights
        self._wide = weights.wide

    def __contains__(self, name: str) -> bool:
        return name in self._weights

    def matrix(self, name: str, rows: int, columns: int) -> Tensor:
        """A linear layer's weight, [rows, columns]."""
        return self._weights.matrix(name, rows, columns)

    def rotary(self) -> Rotary:
        """It has no weights, only sizes."""
        config = self._config
        return Rotary.of(
            config.rope_theta, config.rotary_size, self._weights.dtype, self._weights.device
        )

    def norm(self, name: str) -> Norm:
        """A norm over the hidden size."""
        config = self._config
        weight = self._weights.take(f"{name}.weight", config.hidden_size, dtype=self._wide)
        return Norm.centered(weight, config.rms_norm_eps)

    def attention(self, name: str, layer: int) -> Attention:
        """`name` is the decoder layer; `layer` counts attention layers.

        q_proj has, head by head, the rows of the query and then those of its output gate.
        """
        config, name = self._config, f"{name}.self_attn"
        size, hidden = config.head_dim, config.hidden_size
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads

        def joined(part: str, *columns: int) -> Tensor:
            take = self._weights.take
            pairs = take(f"{name}.q_proj.{part}", 2 * heads * size, *columns)
            query, gate = pairs.unflatten(0, (heads, 2, size)).unbind(1)
            key = take(f"{name}.k_proj.{part}", kv_heads * size, *columns)
            value = take(f"{name}.v_proj.{part}", kv_heads * size, *columns)
            return torch.cat((query.flatten(0, 1), key, value, gate.flatten(0, 1)))

        biased = config.attention_bias
        return Attention(
            project=joined("weight", hidden),
            bias=joined("bias") if biased else None,
            norm=self._head_norms(name),
            output=self.matrix(f"{name}.o_proj", hidden, heads * size),
            output_bias=self._weights.take(f"{name}.o_proj.bias", hidden) if biased else None,
            layer=layer,
            heads=heads,
            kv_heads=kv_heads,
            head_size=size,
            scale=size**-0.5,
            gated=True,
        )

    def _head_norms(self, name: str) -> Norm:
        """q_norm for each query head, k_norm for each key head: [heads + kv heads, head size]."""
        config = self._config
        query, key = (
            self._weights.take(f"{name}.{part}.weight", config.head_dim, dtype=self._wide)
            for part in ("q_norm", "k_norm")
        )
        weight = torch.cat(
            (
                query.expand(config.num_attention_heads, -1),
                key.expand(config.num_key_value_heads, -1),
            )
        )
        return Norm.centered(weight, config.rms_norm_eps)

    def recurrence(self, name: str, layer: int) -> GatedDeltaNet:
        """`name` is the decoder layer; `layer` counts recurrent layers.

        in_proj_qkvz and in_proj_ba have, key head by key head, the rows of everything that belongs
        to it: query, key, its value heads, their gates; b, a.
        """
        config, name = self._config, f"{name}.linear_attn"
        key_heads, key_dim = config.linear_num_key_heads, config.linear_key_head_dim
        value_heads, value_dim = config.linear_num_value_heads, config.linear_value_head_dim
        keys, values, hidden = key_heads * key_dim, value_heads * value_dim, config.hidden_size

        qkvz = self.matrix(f"{name}.in_proj_qkvz", 2 * keys + 2 * values, hidden)
        ba = self.matrix(f"{name}.in_proj_ba", 2 * value_heads, hidden)
        group, group_values = value_heads // key_heads, values // key_heads
        parts = (
            *qkvz.view(key_heads, -1, hidden).split((key_dim, key_dim, *2 * (group_values,)), 1),
            *ba.view(key_heads, -1, hidden).split(group, 1),
        )
        kernel = config.linear_conv_kernel_dim
        conv = self._weights.take(f"{name}.conv1d.weight", 2 * keys + values, 1, kernel)
        rate, rate_bias, norm = (
            self._weights.take(f"{name}.{part}", size, dtype=self._wide)
            for part, size in (
                ("A_log", value_heads),
                ("dt_bias", value_heads),
                ("norm.weight", value_dim),
            )
        )
        return GatedDeltaNet(
            project=torch.cat([part.flatten(0, 1) for part in parts]),
            recurrence=Recurrence(GDN, conv[:, 0], None, layer),
            rate=-rate.exp(),
            rate_bias=rate_bias,
            norm=GatedNorm(norm, config.rms_norm_eps),
            output=self.matrix(f"{name}.out_proj", hidden, values),
            key_heads=key_heads,
            key_dim=key_dim,
            value_heads=value_heads,
            value_dim=value_dim,
        )

    def mlp(self, name: str, inner: int) -> Mlp:
        """A dense block, or a mixture's shared expert."""
        return feed_forward.mlp(self._weights, name, self._config.hidden_size, inner)

    def moe(self, name: str) -> Moe:
        """A mixture, with a shared expert that has a gate."""
        config = self._config
        experts, hidden = config.num_experts, config.hidden_size
        return Moe(
            router=SoftmaxRouter(
                self.matrix(f"{name}.gate", experts, hidden),
                config.num_experts_per_tok,
                config.norm_topk_prob,
            ),
            experts=feed_forward.experts(
                self._weights, f"{name}.experts", experts, hidden, config.moe_intermediate_size
            ),
            shared=self.mlp(f"{name}.shared_expert", config.shared_expert_intermediate_size),
            shared_gate=self.matrix(f"{name}.shared_expert_gate", 1, hidden),
        )
