"""What the engine asks of a model."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory, Shape


class Model(Protocol):
    """A hybrid causal language model, weights loaded. All tensors on one device, one dtype."""

    vocab_size: int
    hidden_size: int
    context_max: int
    eos_ids: tuple[int, ...]
    state_chunk: int  # prefill yields a state every so many tokens, counted from the chunk's start
    has_draft: bool  # an MTP head is there

    def shape(self) -> Shape:
        """What memory it needs."""

    def forward(self, batch: Forward, memory: Memory) -> Tensor:
        """Run the trunk: write KV at `locations`, move or scratch states.

        Returns hidden [T, H], normed.
        """

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
