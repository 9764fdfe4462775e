"""Trees of the model's own head: EAGLE-2's dynamic draft trees (Li et al., arXiv 2406.16858)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.memory import Memory
from slotscope.engine.models.base import Model
from slotscope.engine.rows import Rows

from .draft import Draft
from .nextn import NextnDrafter


@dataclass(frozen=True, slots=True)
class Candidates:
    """Guesses of one level: every beam's likeliest successors."""

    tokens: Tensor  # [B, n] int64
    scores: Tensor  # [B, n] log-probability of the path from the root
    parents: Tensor  # [B, n] int64 index among the candidates of all levels; -1 = the root


class TreeDrafter(NextnDrafter):
    """Each step feeds the `topk` likeliest paths to the head and considers each one's `topk`
    successors; of all that was considered, the likeliest `nodes` - 1 are verified, and the root.

    A path is less likely than any path that it extends, so parents are chosen with their children.
    """

    def __init__(
        self,
        rows: Rows,
        steps: int,
        model: Model,
        memory: Memory,
        dtype: torch.dtype,
        *,
        topk: int,
        nodes: int,
    ) -> None:
        super().__init__(rows, steps, model, memory, dtype)
        self._topk, self._nodes = topk, nodes

    def draft(self, rows: Tensor) -> Draft:
        """Grow level by level, then prune."""
        batch, topk = len(rows), self._topk
        start, places = self.rows.lengths[rows], torch.arange(topk, device=rows.device)
        hidden = self._hidden[rows]
        scores, tokens = self._successors(hidden)
        levels = [Candidates(tokens, scores, torch.full_like(tokens, -1))]
        # A beam is a candidate that is fed: where it stands among those, whom it follows of those
        # that were fed before, and what the head makes of it.
        beam = places.expand(batch, -1)
        fed = torch.full_like(tokens, -1)
        hidden = hidden.repeat_interleave(topk, 0)
        for step in range(self.steps - 1):
            positions = (start + step)[:, None].expand(-1, topk)
            column = start[:, None] + step * topk + places
            hidden = self.step(rows, tokens, positions, column, hidden, fed)
            further, follows = self._successors(hidden)  # [B * K, K]
            paths = (scores.flatten()[:, None] + further).view(batch, -1)
            considered = Candidates(follows.view(batch, -1), paths, beam.repeat_interleave(topk, 1))
            offset = sum(level.tokens.shape[1] for level in levels)
            levels.append(considered)
            scores, pick = paths.topk(topk, -1)
            tokens, beam = considered.tokens.gather(1, pick), offset + pick
            origin = pick // topk
            fed = torch.cat([fed, step * topk + origin], 1)
            rowwise = torch.arange(batch, device=rows.device)[:, None] * topk + origin
            hidden = hidden[rowwise.flatten()]
        return self._pruned(levels)

    def _successors(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """[N, H] to the log-probabilities [N, topk] and tokens of what is likeliest next."""
        scores, tokens = self.model.logits(hidden).log_softmax(-1).topk(self._topk, -1)
        return scores, tokens

    def _pruned(self, levels: list[Candidates]) -> Draft:
        """The likeliest candidates as a tree, in the order of their levels."""
        scores = torch.cat([level.scores for level in levels], 1)
        parents = torch.cat([level.parents for level in levels], 1)
        # Stable: of equals the earlier, so that a sure child can't displace its parent.
        likeliest = scores.sort(stable=True, dim=1, descending=True).indices[:, : self._nodes - 1]
        kept = likeliest.sort(1).values
        chosen = torch.zeros_like(parents).scatter(1, kept, 1)
        node = chosen.cumsum(1)  # of each kept candidate; the root is 0
        above = parents.gather(1, kept)
        followed = torch.where(above < 0, 0, node.gather(1, above.clamp(min=0)))
        root = torch.full_like(followed[:, :1], -1)
        return Draft(
            torch.cat([level.tokens for level in levels], 1).gather(1, kept),
            torch.cat([root, followed], 1),
            min(self.steps, self._nodes - 1),
        )
