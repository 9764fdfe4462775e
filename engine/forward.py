"""What one launched forward computes: which tokens, and where each row reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.instrument.event import Kind


@dataclass(frozen=True, slots=True)
class Track:
    """A prefill row leaves a checkpoint in `slot`: its state after `tokens` tokens of the chunk."""

    row: int
    tokens: int  # counted from the chunk's start; a multiple of the state chunk
    slot: int


@dataclass(frozen=True, slots=True)
class Pending:
    """Of each row, padding left out: inputs in its slot's replay ring, and whether this step folds
    all of them into the state. A step that does not adds its own."""

    inputs: tuple[int, ...]
    folds: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """One batch for the model. B rows, T = sum(lengths) new tokens, rows back to back.

    Decode and verify have equal lengths, S; their last rows may be padding (slot 0, location 0).
    A verify without `parents` feeds a chain. In a tree a parent stands before its children,
    `positions` count depth, and the table names a token's KV by its number in the tree. A drafter
    feeds a tree level by level: then the new tokens are the last S of N, and the others' KV is
    there already; the trunk is always fed the whole tree, N = S.
    """

    kind: Kind
    tokens: Tensor  # [T] int64
    positions: Tensor  # [T] int64
    lengths: list[int]  # [B] new tokens of each row
    contexts: Tensor  # [B] int64, tokens of each row that are in KV and state already
    locations: Tensor  # [T] int64, where each new token's K and V go in the KV pool; 0 = discard
    table: Tensor  # [B, L] int64, location of each token of each row, the new ones included
    slots: Tensor  # [B] int64, live slot of each row; 0 = pad row
    scratch: Tensor | None = None  # [B] int64, verify: scratch row that takes the per-step states
    tracks: tuple[Track, ...] = ()  # prefill only
    parents: Tensor | None = None  # [B, N] int64, tree: token that each follows; -1 = the state
    pending: Pending | None = None  # prefill, decode: what rings hold; None: nothing, all fold
    mutual: bool = False  # the new tokens of a row see all of each other: a block


def ancestry(parents: Tensor) -> Tensor:
    """Whom each token of a tree sees.

    Args:
        parents: [B, N] int64, -1 for roots.
    Returns:
        [B, N, N] bool: the second token is the first one's ancestor, or itself.
    """
    count = parents.shape[1]
    own = torch.arange(count, device=parents.device)
    sees = ((parents[..., None] == own) | (own[:, None] == own)).float()
    for _ in range((count - 1).bit_length()):  # each squaring doubles the length of the paths
        sees = (sees @ sees).clamp_(max=1)
    return sees > 0
