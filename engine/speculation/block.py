"""DFLASH and DSPARK: a block of tokens in one pass of a small model, conditioned on the target."""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory
from slotscope.engine.models.base import Model
from slotscope.engine.models.block_draft import BlockDraft
from slotscope.engine.rows import Rows
from slotscope.instrument.event import Kind

from .draft import Draft
from .drafter import Drafter, Omission


class BlockDrafter(Drafter):
    """Keeps the draft's keys and values of all context tokens, at the target's locations.

    They depend on the target's hidden state of that token alone, so a prefix from the cache brings
    the right ones along.
    """

    omits = Omission.NO_CHECKPOINT

    def __init__(
        self, rows: Rows, steps: int, target: Model, model: BlockDraft, memory: Memory
    ) -> None:
        super().__init__(rows, steps)
        self.target, self.model, self._memory = target, model, memory
        self.memories = (memory,)

    def observe(
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """Context has grown. That of refused tokens is overwritten when their places are filled."""
        self.model.remember(batch, self._memory, hidden)

    def denoised(self, rows: Tensor, size: int) -> Tensor:
        """Hidden [B, size, H] of each row's last token and `size` - 1 mask tokens behind it."""
        start, table = self.rows.lengths[rows], self.rows.table[rows]
        tokens = torch.full((len(rows), size), self.model.mask_token, device=rows.device)
        tokens[:, 0] = self.rows.tokens[rows, start]
        places = start[:, None] + torch.arange(size, device=rows.device)
        block = Forward(
            kind=Kind.VERIFY,
            tokens=tokens.flatten(),
            positions=places.flatten(),
            lengths=[size] * len(rows),
            contexts=start,
            locations=table.gather(1, places).flatten(),
            table=table[:, : int(places.max()) + 1],
            slots=torch.zeros_like(rows),
            mutual=True,
        )
        hidden = self.model.denoise(block, self._memory, self.target.embed(block.tokens))
        return hidden.view(len(rows), size, -1)


class DflashDrafter(BlockDrafter):
    """Each mask token is its own place's guess, independent of the others."""

    def draft(self, rows: Tensor) -> Draft:
        """The anchor's own output is not used."""
        hidden = self.denoised(rows, self.steps + 1)[:, 1:]
        return Draft(self.target.logits(hidden).argmax(-1))


class DsparkDrafter(BlockDrafter):
    """Each place guesses the token behind it, and the Markov head lets each guess bear on the next:
    semi-autoregressive, with a pass of the backbone for the block and a bias for each token."""

    def draft(self, rows: Tensor) -> Draft:
        """The last place needs no successor, so a block is as long as its guesses."""
        markov = self.model.markov
        assert markov is not None, "assemble has made sure of the head"
        logits = self.target.logits(self.denoised(rows, self.steps))  # [B, steps, vocab]
        token, guesses = self.rows.tokens[rows, self.rows.lengths[rows]], []
        for step in range(self.steps):
            token = (logits[:, step] + markov.bias(token)).argmax(-1)
            guesses.append(token)
        return Draft(torch.stack(guesses, 1))
