"""The tensors that outlive a forward: KV of attention layers, states of recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model needs kept for each token and for each slot."""

    attention_layers: int  # the MTP layer included
    kv_heads: int
    head_dim: int
    recurrent_layers: int
    conv_channels: int
    conv_window: int  # inputs kept: kernel size - 1
    state_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Memory:
    """All of it. Location 0 and slot 0 take the writes of padding; the last scratch row likewise."""

    keys: Tensor  # [attention layers, tokens, kv heads, head dim]
    values: Tensor  # same
    conv: Tensor  # [recurrent layers, slots, conv channels, conv window]
    ssm: Tensor  # [recurrent layers, slots, state heads, key dim, value dim]
    conv_steps: Tensor  # [recurrent layers, scratch rows, draft tokens, conv channels, conv window]
    ssm_steps: (
        Tensor  # [recurrent layers, scratch rows, draft tokens, state heads, key dim, value dim]
    )

    @staticmethod
    def allocate(
        shape: Shape,
        *,
        tokens: int,
        slots: int,
        rows: int,
        draft_tokens: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Memory:
        """Zeroed memory for `slots` slots (slot 0 is padding), `tokens` KV locations, `rows` scratch rows."""
        new = lambda *size: torch.zeros(*size, dtype=dtype, device=device)  # noqa: E731
        kv = (shape.attention_layers, tokens, shape.kv_heads, shape.head_dim)
        conv = (shape.conv_channels, shape.conv_window)
        ssm = (shape.state_heads, shape.key_dim, shape.value_dim)
        layers, steps = shape.recurrent_layers, (rows, draft_tokens)
        return Memory(
            keys=new(*kv),
            values=new(*kv),
            conv=new(layers, slots, *conv),
            ssm=new(layers, slots, *ssm),
            conv_steps=new(layers, *steps, *conv),
            ssm_steps=new(layers, *steps, *ssm),
        )
