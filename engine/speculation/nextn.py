"""NEXTN: the model's own multi-token prediction head, fed with its own hidden (a chain)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory
from slotscope.engine.models.base import Model
from slotscope.engine.rows import Rows
from slotscope.instrument.event import Kind

from .draft import Draft
from .drafter import Drafter


class NextnDrafter(Drafter):
    """The head at position t takes the hidden of t and the token t + 1, and predicts t + 2.

    It has KV of its own at the trunk's locations. A prefix from the cache brings the head's KV
    along; at the prefix's last position that was made with the donor's next token, which can cost
    an acceptance but not an answer.
    """

    def __init__(
        self, rows: Rows, steps: int, model: Model, memory: Memory, dtype: torch.dtype
    ) -> None:
        super().__init__(rows, steps)
        self.model, self._memory = model, memory
        device = rows.table.device
        self._hidden = torch.zeros(rows.count + 1, model.hidden_size, dtype=dtype, device=device)

    def observe(
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """Run the head over the new tokens; keep each row's last hidden, which guesses first."""
        out = self.model.draft(replace(batch, tokens=following), self._memory, hidden)
        self._hidden[rows] = out[last]

    def draft(self, rows: Tensor) -> Draft:
        """The first guess is there already; each further one is a step of the head."""
        hidden, start = self._hidden[rows], self.rows.lengths[rows]
        guesses = [self.model.logits(hidden).argmax(-1)]
        for step in range(self.steps - 1):
            place = (start + step)[:, None]
            hidden = self.step(rows, guesses[-1][:, None], place, place, hidden)
            guesses.append(self.model.logits(hidden).argmax(-1))
        return Draft(torch.stack(guesses, 1))

    def step(
        self,
        rows: Tensor,
        tokens: Tensor,
        positions: Tensor,
        places: Tensor,
        hidden: Tensor,
        parents: Tensor | None = None,
    ) -> Tensor:
        """Feed guesses to the head.

        Args:
            rows: [B] whose guesses they are.
            tokens: [B, K] int64.
            positions: [B, K] int64, for rotary angles.
            places: [B, K] int64 columns of the row's table where their KV goes.
            hidden: [B * K, H] the head's hidden that each token was guessed from.
            parents: of the whole tree so far, as in `Forward`, whose last K nodes these are.
        Returns:
            hidden [B * K, H].
        """
        table, count = self.rows.table[rows], tokens.shape[1]
        fed = Forward(
            kind=Kind.DECODE if parents is None else Kind.VERIFY,
            tokens=tokens.flatten(),
            positions=positions.flatten(),
            lengths=[count] * len(rows),
            contexts=places[:, 0] if parents is None else self.rows.lengths[rows],
            locations=table.gather(1, places).flatten(),
            table=table[:, : int(places.max()) + 1],
            slots=torch.zeros_like(rows),
            parents=parents,
        )
        return self.model.draft(fed, self._memory, hidden)
