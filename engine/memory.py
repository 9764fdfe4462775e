"""The tensors that outlive a forward: KV of attention layers, states of recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
    has_values: bool = True  # False: a token's values are part of its keys, as in latent attention


@dataclass(frozen=True, slots=True)
class Memory:
    """All of it. Location 0, slot 0 and scratch row 0 take the writes of padding."""

    keys: Tensor  # [attention layers, tokens, kv heads, head dim]
    values: Tensor  # same; of head dim 0 where values are part of the keys
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
        """Zeroed memory; the counts include the slot, the location and the row of padding."""
        kv = (shape.attention_layers, tokens, shape.kv_heads, shape.head_dim)
        conv = (shape.conv_channels, shape.conv_window)
        ssm = (shape.state_heads, shape.key_dim, shape.value_dim)
        layers, steps = shape.recurrent_layers, (rows, draft_tokens)
        make = partial(torch.zeros, dtype=dtype, device=device)
        return Memory(
            keys=make(kv),
            values=make(kv if shape.has_values else (*kv[:-1], 0)),
            conv=make((layers, slots, *conv)),
            ssm=make((layers, slots, *ssm)),
            conv_steps=make((layers, *steps, *conv)),
            ssm_steps=make((layers, *steps, *ssm)),
        )
