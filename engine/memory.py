"""The tensors that outlive a forward: KV of attention layers, states of recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from slotscope.instrument.event import Component

from .layers.precision import wide


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

    @property
    def ring_width(self) -> int:
        """Numbers that a replay ring keeps of a token, at most: a key, a decay for each of its
        channels, a value and a write strength for each head."""
        return self.state_heads * (2 * self.key_dim + self.value_dim + 1)


@dataclass(frozen=True, slots=True)
class Memory:
    """All of it. Location 0, slot 0 and scratch row 0 take the writes of padding.

    Each rank of decode context has keys and values of its own. Location l is row l // ranks of rank
    l mod ranks, which is SGLang's rule: a location alone tells where it lies, a page of the tree is
    one page of each rank, and a request's token t lies on rank t mod ranks, since it has whole
    pages of the tree. So the ranks have equal shares of each request, to within a token.
    """

    keys: Tensor  # [attention layers, ranks, tokens of a rank, kv heads, head dim]
    values: Tensor  # same; of head dim 0 where values are part of the keys
    conv: Tensor  # [recurrent layers, slots, conv channels, conv window]
    ssm: Tensor  # [recurrent layers, slots, state heads, key dim, value dim]
    conv_steps: Tensor  # [recurrent layers, scratch rows, draft tokens, conv channels, conv window]
    ssm_steps: (
        Tensor  # [recurrent layers, scratch rows, draft tokens, state heads, key dim, value dim]
    )

    ring: Tensor  # [recurrent layers, slots, ring length, ring width], wide dtype; length 0: none

    @property
    def components(self) -> dict[Component, Tensor]:
        """What a slot's state is made of, each [recurrent layers, slots, ...]. Whatever moves whole
        states moves all of these."""
        parts = {Component.CONV: self.conv, Component.SSM: self.ssm, Component.RING: self.ring}
        return {part: states for part, states in parts.items() if states.shape[2]}

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
        ranks: int = 1,
        ring: int = 0,
    ) -> Memory:
        """Zeroed memory; the counts include the slot, the location and the row of padding. `ring`
        is the length of each slot's replay ring.

        `tokens` are those of one rank: location numbers go up to `ranks` times as many.
        """
        kv = (shape.attention_layers, ranks, tokens, shape.kv_heads, shape.head_dim)
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
            ring=make((layers, slots, ring, shape.ring_width), dtype=wide(dtype)),
        )

    @property
    def ranks(self) -> int:
        """Ranks of decode context."""
        return self.keys.shape[1]

    def keep(
        self, layer: int, locations: Tensor, keys: Tensor, values: Tensor | None = None
    ) -> None:
        """Write tokens' keys and values, each on the rank where its location lies.

        Args:
            layer: index in `keys` and `values`.
            locations: [T] int64.
            keys: [T, kv heads, head dim].
            values: same; None where they are part of the keys.
        """
        rows = self._rows(locations)
        self.keys[layer].flatten(0, 1).index_copy_(0, rows, keys)
        if values is not None:
            self.values[layer].flatten(0, 1).index_copy_(0, rows, values)

    def move(self, source: Tensor, target: Tensor) -> None:
        """Copy the keys and values at locations [N] int64 to others, which may be on other ranks.
        All are read before one is written."""
        read, written = self._rows(source), self._rows(target)
        for pool in (self.keys.flatten(1, 2), self.values.flatten(1, 2)):
            pool[:, written] = pool[:, read]

    def send(self, source: Tensor, other: Memory, target: Tensor) -> None:
        """Copy the keys and values at locations [N] int64 to those of another memory, which has
        the same layers and ranks, maybe on another device."""
        read, written = self._rows(source), other._rows(target)
        for mine, theirs in ((self.keys, other.keys), (self.values, other.values)):
            theirs.flatten(1, 2)[:, written] = mine.flatten(1, 2)[:, read].to(theirs.device)

    def _rows(self, locations: Tensor) -> Tensor:
        """Their rows in all ranks' pools, laid end to end."""
        if self.ranks == 1:
            return locations
        return locations % self.ranks * self.keys.shape[2] + locations // self.ranks
