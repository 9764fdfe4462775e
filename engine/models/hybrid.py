"""A hybrid model: decoder layers, some of which attend and some of which keep a recurrent state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from slotscope.engine.forward import Forward
from slotscope.engine.layers.norm import Norm
from slotscope.engine.layers.plan import CHUNK, Plan
from slotscope.engine.layers.rotary import Rotary
from slotscope.engine.layers.workspace import Workspace
from slotscope.engine.memory import Memory, Shape

from .error import ModelError
from .part import WHOLE, Part


class Mixer(Protocol):
    """What mixes tokens: attention, or a layer with a recurrent state."""

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]."""


class FeedForward(Protocol):
    """What works on each token alone."""

    def __call__(self, x: Tensor) -> Tensor:
        """[T, hidden] to [T, hidden]."""


@dataclass(frozen=True, slots=True)
class Block:
    """One decoder layer: a mixer over tokens, a feed-forward, each behind a norm and added."""

    mixer_norm: Norm
    mixer: Mixer
    mlp_norm: Norm
    mlp: FeedForward
    residual_scale: float = 1.0  # of what is added

    def __call__(self, x: Tensor, plan: Plan, memory: Memory) -> Tensor:
        """[T, hidden] to [T, hidden]."""
        x = torch.add(x, self.mixer(self.mixer_norm(x), plan, memory), alpha=self.residual_scale)
        return torch.add(x, self.mlp(self.mlp_norm(x)), alpha=self.residual_scale)


@dataclass(frozen=True, slots=True)
class Head:
    """The MTP head: from a token's successor and its hidden state to the token after that."""

    embedding_norm: Norm
    hidden_norm: Norm
    fuse: Tensor  # [hidden, 2 * hidden]: the embedding first, then the hidden state
    block: Block
    norm: Norm


@dataclass(slots=True, repr=False)
class Hybrid:
    """Implements `Model`, for every family: a family's module builds it from its folder."""

    context_max: int
    eos_ids: tuple[int, ...]
    memory_shape: Shape
    embedding: Tensor  # [vocab, hidden]
    unembedding: Tensor  # [vocab, hidden]; the embedding itself where the two are tied
    blocks: tuple[Block, ...]
    norm: Norm
    rotary: Rotary | None = None  # None: positions show in the recurrent layers alone
    head: Head | None = None
    part: Part = WHOLE  # which of the model's layers `blocks` are
    embedding_scale: float = 1.0
    logits_scale: float = 1.0
    state_chunk: int = field(init=False, default=CHUNK)
    vocab_size: int = field(init=False)
    hidden_size: int = field(init=False)
    has_draft: bool = field(init=False)
    _workspace: Workspace = field(init=False, default_factory=Workspace)

    def __post_init__(self) -> None:
        self.vocab_size, self.hidden_size = self.embedding.shape
        self.has_draft = self.head is not None

    def shape(self) -> Shape:
        """What memory it needs. The MTP layer's keys and values are the last attention layer's."""
        return self.memory_shape

    def cut(self, part: Part) -> Hybrid:
        """Its memory counts its own layers alone, so they are numbered anew."""
        chosen = part.layers(len(self.blocks))
        recurrent = [hasattr(block.mixer, "recurrence") for block in self.blocks]
        skipped_states = sum(recurrent[: chosen.start])
        skipped_keys = chosen.start - skipped_states
        states = sum(recurrent[chosen.start : chosen.stop])
        head = self.head if part.last else None

        def moved(block: Block) -> Block:
            return replace(block, mixer=_renumbered(block.mixer, skipped_keys, skipped_states))

        cut = replace(
            self,
            part=part,
            blocks=tuple(moved(block) for block in self.blocks[chosen.start : chosen.stop]),
            head=head and replace(head, block=moved(head.block)),
            memory_shape=replace(
                self.memory_shape,
                attention_layers=len(chosen) - states + (head is not None),
                recurrent_layers=states,
            ),
        )
        cut.has_draft = self.has_draft
        return cut

    @torch.inference_mode()
    def forward(self, batch: Forward, memory: Memory, hidden: Tensor | None = None) -> Tensor:
        """Run its layers. Returns hidden [T, H], normed behind the last of all."""
        x = self.embed(batch.tokens) if hidden is None else hidden
        plan = Plan.of(batch, self.rotary, x.dtype, self._workspace, memory.ranks)
        for block in self.blocks:
            x = block(x, plan, memory)
        return self.norm(x) if self.part.last else x

    @torch.inference_mode()
    def embed(self, tokens: Tensor) -> Tensor:
        """[T] to [T, H]."""
        x = embedding(tokens, self.embedding)
        return x if self.embedding_scale == 1 else x * self.embedding_scale

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[R, H] to [R, vocab]."""
        logits = linear(hidden, self.unembedding)
        return logits if self.logits_scale == 1 else logits * self.logits_scale

    @torch.inference_mode()
    def draft(self, batch: Forward, memory: Memory, hidden: Tensor) -> Tensor:
        """One pass of the MTP head, fed with next tokens. Returns hidden [T, H], normed."""
        head = self.head
        if head is None:
            raise ModelError(
                "draft was called, but this folder has no mtp.* weights. "
                "Ask `has_draft` before choosing NEXTN."
            )
        next_ = head.embedding_norm(self.embed(batch.tokens))
        x = linear(torch.cat((next_, head.hidden_norm(hidden)), -1), head.fuse)
        plan = Plan.of(batch, self.rotary, x.dtype, self._workspace, memory.ranks)
        return head.norm(head.block(x, plan, memory))


def _renumbered(mixer: Any, keys: int, states: int) -> Mixer:
    """The mixer, its layer counted from so many attending, or so many recurrent, layers on."""
    if hasattr(mixer, "recurrence"):
        layer = mixer.recurrence.layer - states
        moved: Mixer = replace(mixer, recurrence=replace(mixer.recurrence, layer=layer))
    else:
        moved = replace(mixer, layer=mixer.layer - keys)
    return moved
