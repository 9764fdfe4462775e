"""Block drafts: a small attention model that guesses a whole block of tokens in one pass.

DFLASH (Chen et al., arXiv 2602.06036) denoises a block once: the anchor, which is the row's last
token, and mask tokens behind it see each other and the context, whose keys and values are made of
the target's hidden states. DSPARK has the same backbone and a Markov head on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from slotscope.engine.forward import Forward
from slotscope.engine.layers.attention import Attention
from slotscope.engine.layers.mlp import Mlp
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.plan import Plan
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape

from .hybrid import Block


@dataclass(frozen=True, slots=True)
class Markov:
    """How the token before bears on the next: a bias on its logits, of low rank."""

    before: Tensor  # [vocab, rank]
    after: Tensor  # [vocab, rank]

    def bias(self, tokens: Tensor) -> Tensor:
        """[B] tokens to [B, vocab]."""
        return linear(embedding(tokens, self.before), self.after)


@dataclass(frozen=True, slots=True, repr=False)
class BlockDraft:
    """It has neither embedding nor unembedding: the target's are used."""

    shape: Shape  # of its own keys and values
    block_size: int  # tokens in a block that it was trained for, the anchor included
    mask_token: int
    fuse: Tensor  # [hidden, hidden]: the target's hidden state to what keys and values are made of
    context_norm: Norm
    layers: tuple[tuple[Block, Attention], ...]  # a block, and its mixer
    norm: Norm
    rotary: Rotary
    markov: Markov | None
    _workspace: Workspace = field(default_factory=Workspace)

    @torch.inference_mode()
    def remember(self, batch: Forward, memory: Memory, hidden: Tensor) -> None:
        """Write every layer's keys and values of context tokens.

        Args:
            batch: its `positions` and `locations` say which tokens, and where they go.
            hidden: [T, H] the target's.
        """
        x = self.context_norm(linear(hidden, self.fuse))
        angles = self.rotary.angles(batch.positions, x.dtype)
        for _, mixer in self.layers:
            mixer.remember(x, angles, batch.locations, memory)

    @torch.inference_mode()
    def denoise(self, block: Forward, memory: Memory, embedded: Tensor) -> Tensor:
        """One pass over blocks [T, H], embedded as the target does. Returns hidden [T, H], normed.

        `block` is mutual; its keys and values go to its locations, until context takes them.
        """
        plan = Plan.of(block, self.rotary, embedded.dtype, self._workspace, memory.ranks)
        x = embedded
        for layer, _ in self.layers:
            x = layer(x, plan, memory)
        return self.norm(x)


def attention_shape(layers: int, kv_heads: int, head_dim: int) -> Shape:
    """Keys and values alone: there is no recurrent state."""
    return Shape(layers, kv_heads, head_dim, 0, 1, 1, 1, 1, 1)


def layer_of(
    mixer: Attention, mixer_norm: Norm, mlp_norm: Norm, mlp: Mlp
) -> tuple[Block, Attention]:
    """A decoder layer, and its mixer by the type that it has."""
    return Block(mixer_norm, mixer, mlp_norm, mlp), mixer
