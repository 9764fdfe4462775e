"""Accept: which of the drafted tokens are what the model itself chose."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.forward import ancestry
from slotscope.engine.memory import Memory

from .draft import Draft


@dataclass(frozen=True, slots=True)
class Accepted:
    """The path through a draft that a verify took. What a pipeline stage relays."""

    index: Tensor  # [B, P] int64, SGLang's accept_index: node of each path token; beyond it -1
    length: Tensor  # [B] int64, accept_len >= 1: the root is always taken

    @property
    def path(self) -> Tensor:
        """[B, P] int64: `index`, and beyond the accepted tokens whatever node stands there."""
        own = torch.arange(self.index.shape[1], device=self.index.device)
        return torch.where(self.index < 0, own, self.index)


def accept(draft: Draft, chosen: Tensor) -> Accepted:
    """Take a guess where the model chose it behind its parent, and took the parent.

    Exact for greedy and for sampling alike, since drafts don't depend on what is drawn.

    Args:
        draft: of B rows.
        chosen: [B, S] int64, what the model chose behind each node.
    """
    if draft.parents is None:
        taken = (draft.tokens == chosen[:, :-1]).long().cumprod(1)
        length = 1 + taken.sum(1)
        order = torch.arange(chosen.shape[1], device=chosen.device)
        return Accepted(torch.where(order < length[:, None], order, -1), length)
    assert draft.levels is not None, "a tree knows how deep it may be"
    agreed = torch.ones_like(chosen, dtype=torch.bool)  # the root was chosen before
    agreed[:, 1:] = draft.tokens == chosen.gather(1, draft.parents[:, 1:])
    sees = ancestry(draft.parents)
    taken = (agreed[:, None] | ~sees).all(-1)
    levels = torch.arange(draft.levels + 1, device=chosen.device)
    # Siblings differ, so at each level at most one node is taken.
    found = taken[:, None] & ((sees.sum(-1) - 1)[:, None] == levels[:, None])  # [B, P, S]
    index = torch.where(found.any(-1), found.long().argmax(-1), -1)
    return Accepted(index, taken.sum(1))


def along(path: Tensor, values: Tensor) -> Tensor:
    """[B, S, ...] by node to [B, P, ...] by path."""
    rows = torch.arange(len(path), device=path.device)
    return values[rows[:, None], path]


def compact(memory: Memory, locations: Tensor, path: Tensor) -> None:
    """Move the KV of a tree's path to consecutive places, as if a chain had been fed.

    Args:
        locations: [B, S] int64, where each node's keys and values are.
        path: [B, P] int64 nodes; the j-th one goes to the place of node j.
    """
    memory.move(locations.gather(1, path).flatten(), locations[:, : path.shape[1]].flatten())
