"""Draft: guesses that a verify feeds behind a row's last token, as a chain or as a tree."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.forward import ancestry


@dataclass(frozen=True, slots=True)
class Draft:
    """Node 0 is the root, the row's last token; node n > 0 is guess n - 1.

    A parent stands before its children, and siblings are different tokens.
    """

    tokens: Tensor  # [B, S - 1] int64 guesses
    parents: Tensor | None = None  # [B, S] int64 nodes, the root's is -1; None: a chain
    levels: int | None = None  # of a tree: edges from the root to the deepest node, at most

    def of(self, rows: int) -> Draft:
        """That of the first rows."""
        parents = None if self.parents is None else self.parents[:rows]
        return Draft(self.tokens[:rows], parents, self.levels)

    def depths(self) -> Tensor:
        """Edges from the root to each node: [B, S] int64, or [1, S] for chains."""
        if self.parents is None:
            return torch.arange(self.tokens.shape[1] + 1, device=self.tokens.device)[None]
        return ancestry(self.parents).sum(-1) - 1
