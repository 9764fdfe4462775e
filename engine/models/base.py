"""What the engine asks of a model."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory, Shape

from .part import Part


class Model(Protocol):
    """A hybrid causal language model, or one pipeline stage's layers of it, weights loaded. All
    tensors on one device, one dtype."""

    vocab_size: int
    hidden_size: int
    context_max: int
    eos_ids: tuple[int, ...]
    state_chunk: int  # prefill yields a state every so many tokens, counted from the chunk's start
    has_draft: bool  # an MTP head is there; of stages the last one has it, and all know of it

    def cut(self, part: Part) -> Model:
        """A stage's layers of this model, which must be whole. Weights are shared."""

    def shape(self) -> Shape:
        """What memory it needs."""

    def forward(self, batch: Forward, memory: Memory, hidden: Tensor | None = None) -> Tensor:
        """Run its layers: write KV at `locations`, move or scratch states.

        Args:
            hidden: [T, H] from the stage before; None for the first stage, which embeds.
        Returns:
            hidden [T, H], behind the model's last layer normed.
        """

    def embed(self, tokens: Tensor) -> Tensor:
        """[T] int64 to [T, H]: what its first layer is fed."""

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, H] to [R, vocab]."""

    def draft(self, batch: Forward, memory: Memory, hidden: Tensor) -> Tensor:
        """One pass of the MTP head, which has KV of its own and touches no state.

        Args:
            batch: its `tokens` are each position's *next* token; KV goes to its `locations`.
            hidden: [T, H] trunk hidden, or the head's own of the step before.
        Returns:
            hidden [T, H], normed; `logits` of it predict the token after `tokens`.
        """
