"""NGRAM: what followed the last time that the text ended like this."""

from __future__ import annotations

import torch
from torch import Tensor

from .draft import Draft
from .drafter import Drafter, Omission

SUFFIX_MAX = 4
"""Longest suffix that is looked up, in tokens. The longest match wins, then the latest."""


class NgramDrafter(Drafter):
    """Looks in the request's own prompt and output; needs no weights."""

    omits = Omission.NO_COMMIT

    def draft(self, rows: Tensor) -> Draft:
        """Where nothing matches, the last token is repeated: a guess that costs nothing more."""
        tokens, lengths = self.rows.tokens[rows], self.rows.lengths[rows]  # [B, W], [B]
        best = self._latest_match(tokens, lengths)  # [B] index of the match's last token
        ahead = torch.arange(1, self.steps + 1, device=tokens.device)
        index = (best[:, None] + ahead).clamp(max=self.rows.width - 1)
        guessed = tokens.gather(1, index)
        known = (best[:, None] >= 0) & (index <= lengths[:, None])
        return Draft(torch.where(known, guessed, tokens.gather(1, lengths[:, None])))

    def _latest_match(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Index where the longest repeated suffix ended before; -1 for none."""
        batch, width = tokens.shape
        place = torch.arange(width, device=tokens.device)
        agree = (place < lengths[:, None]).clone()
        score = torch.full((batch, width), -1, device=tokens.device)
        for n in range(SUFFIX_MAX):
            wanted = tokens.gather(1, (lengths - n).clamp(min=0)[:, None])
            agree &= (tokens.roll(n, 1) == wanted) & (place >= n) & (lengths[:, None] > n)
            score = torch.where(agree, n * width + place, score)
        best = score.max(1).values
        return torch.where(best < 0, best, best % width)
