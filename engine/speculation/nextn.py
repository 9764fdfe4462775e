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
        self._model, self._memory = model, memory
        device = rows.table.device
        self._hidden = torch.zeros(rows.count + 1, model.hidden_size, dtype=dtype, device=device)
        self._first = torch.zeros(rows.count + 1, dtype=torch.int64, device=device)

    def observe(
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """Run the head over the new tokens; keep each row's first guess and its hidden."""
        out = self._model.draft(replace(batch, tokens=following), self._memory, hidden)[last]
        self._hidden[rows] = out
        self._first[rows] = self._model.logits(out).argmax(-1)

    def draft(self, rows: Tensor) -> Draft:
        """The first guess is there already; each further one is a step of the head."""
        hidden, token = self._hidden[rows], self._first[rows]
        lengths = self.rows.lengths[rows]
        guesses = [token]
        for step in range(self.steps - 1):
            batch = self._step(rows, token, lengths + step)
            hidden = self._model.draft(batch, self._memory, hidden)
            token = self._model.logits(hidden).argmax(-1)
            guesses.append(token)
        return Draft(torch.stack(guesses, 1))

    def _step(self, rows: Tensor, tokens: Tensor, positions: Tensor) -> Forward:
        table = self.rows.table[rows]
        return Forward(
            kind=Kind.DECODE,
            tokens=tokens,
            positions=positions,
            lengths=[1] * len(rows),
            contexts=positions,
            locations=table.gather(1, positions[:, None])[:, 0],
            table=table[:, : int(positions.max()) + 1],
            slots=torch.zeros_like(rows),
        )
