"""What the engine asks of a model."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ..forward import Forward
from ..memory import Memory, Shape


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
        """Run the trunk: writes KV at `locations`, moves or scratches states. Returns hidden [T, H], normed."""

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, H] to [R, vocab]."""

    def draft(self, batch: Forward, memory: Memory, hidden: Tensor) -> Tensor:
        """One pass of the MTP head: `tokens` are each position's *next* token, `hidden` [T, H] its trunk
        (or previous draft) hidden. Writes the MTP layer's KV at `locations`; touches no state. Returns
        hidden [T, H], normed; `logits` of it predict the token after `tokens`."""
