"""What the layers of one forward share, worked out once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.forward import Forward, Track, ancestry
from slotscope.instrument.event import Kind

from .rotary import Angles, Rotary
from .workspace import Workspace

CHUNK = 64
"""Prefill knows the state every so many tokens, counted from the chunk's start."""


class PlanError(ValueError):
    """A forward that asks the layers for what they can't give. The message says for what."""


@dataclass(frozen=True, slots=True)
class Row:
    """A prefill row, as host integers: its new tokens are start:end of the batch."""

    start: int
    end: int
    slot: int
    tracks: tuple[Track, ...]
    pending: int = 0  # inputs in the slot's ring, which its state lacks


@dataclass(frozen=True, slots=True)
class Reach:
    """What new tokens may look at on one rank: for each row a rectangle, its queries against the
    locations that it has there."""

    locations: Tensor  # [rows, L] int64 in the rank's pool; beyond a row's end its first one there
    mask: (
        Tensor  # [rows, 1, tokens a row, L] of the activations' dtype: 0, or -inf beyond the token
    )
    blind: Tensor  # [rows, 1, tokens a row] bool: tokens that see nothing on this rank


@dataclass(frozen=True, slots=True)
class Plan:
    """A forward, and what follows from it for every layer."""

    batch: Forward
    angles: Angles | None  # None: the model has no positions
    reaches: tuple[tuple[Reach, ...], ...]  # prefill: of each row, else of the batch; each by rank
    rows: tuple[Row, ...]  # prefill only
    workspace: Workspace

    @staticmethod
    def of(
        batch: Forward,
        rotary: Rotary | None,
        dtype: torch.dtype,
        workspace: Workspace,
        ranks: int = 1,
    ) -> Plan:
        """For activations of `dtype`, and keys and values on so many ranks."""
        angles = rotary.angles(batch.positions, dtype) if rotary else None
        if batch.kind is not Kind.PREFILL:
            return Plan(batch, angles, (_reaches(batch, dtype, ranks),), (), workspace)
        return Plan(batch, angles, _prefill_reaches(batch, dtype, ranks), _rows(batch), workspace)


def _reaches(batch: Forward, dtype: torch.dtype, ranks: int) -> tuple[Reach, ...]:
    """Rows of equal lengths: query d of a row sees its context and the new tokens up to d, or
    those of them that it descends from, or all."""
    rows, width = batch.table.shape
    new = torch.arange(batch.tokens.shape[0] // rows, device=batch.table.device)
    if batch.parents is not None:
        return _tree_reaches(batch, batch.parents, len(new), dtype, ranks)
    if batch.mutual:
        new = new.new_full(new.shape, len(new) - 1)
    last = batch.contexts[:, None] + new  # [rows, tokens a row]
    index = torch.arange(width, device=batch.table.device)
    return _dealt(batch.table, index <= last[:, -1:], index > last[..., None], dtype, ranks)


def _tree_reaches(
    batch: Forward, parents: Tensor, new: int, dtype: torch.dtype, ranks: int
) -> tuple[Reach, ...]:
    """The tree's tokens lie behind the context, in the order of their numbers."""
    width, count = batch.table.shape[1], parents.shape[1]
    # Which token of the tree a column of the table is: negative in the context, count beyond.
    node = torch.arange(width, device=batch.table.device) - batch.contexts[:, None]
    sees = ancestry(parents)[:, -new:]  # [rows, new, count]
    inside = node.clamp(0, count - 1)[:, None].expand(-1, new, -1)
    seen = torch.where(node[:, None] < 0, True, sees.gather(2, inside) & (node < count)[:, None])
    return _dealt(batch.table, node < count, ~seen, dtype, ranks)


def _prefill_reaches(
    batch: Forward, dtype: torch.dtype, ranks: int
) -> tuple[tuple[Reach, ...], ...]:
    """Rows of any lengths, one by one."""
    reaches = []
    for row, (context, new) in enumerate(zip(batch.contexts.tolist(), batch.lengths, strict=True)):
        total = context + new
        hidden = torch.ones(new, total, dtype=torch.bool, device=batch.table.device)
        table = batch.table[row : row + 1, :total]
        inside = torch.ones_like(table, dtype=torch.bool)
        reaches.append(_dealt(table, inside, hidden.triu_(context + 1)[None], dtype, ranks))
    return tuple(reaches)


def _dealt(
    table: Tensor, inside: Tensor, hidden: Tensor, dtype: torch.dtype, ranks: int
) -> tuple[Reach, ...]:
    """What lies on each rank; a rank beyond the table's width has nothing and is left out.

    Args:
        table: [rows, L] int64, whose column c lies on rank c mod ranks.
        inside: [rows, L] bool, columns that are some token's; the others may be anything.
        hidden: [rows, tokens a row, L] bool, columns that a token may not look at.
    """
    if ranks == 1:  # what follows comes to the same, but a decode step would feel it
        locations = torch.where(inside, table, table[:, :1])
        blind = hidden.new_zeros(hidden.shape[:2])  # each sees itself
        return (Reach(locations, _mask(hidden, dtype)[:, None], blind[:, None]),)
    reaches = []
    for rank in range(min(ranks, table.shape[1])):
        own = table[:, rank::ranks] // ranks
        within, unseen = inside[:, rank::ranks], hidden[:, None, :, rank::ranks]
        # What is behind a row's end may be stale memory, or another rank's.
        locations = torch.where(within, own, own[:, :1] * within[:, :1])
        reaches.append(Reach(locations, _mask(unseen, dtype), unseen.all(-1)))
    return tuple(reaches)


def _mask(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(
        hidden, float("-inf")
    )


def _rows(batch: Forward) -> tuple[Row, ...]:
    rows, start = [], 0
    for number, (slot, new) in enumerate(zip(batch.slots.tolist(), batch.lengths, strict=True)):
        tracks = tuple(track for track in batch.tracks if track.row == number)
        for track in tracks:
            if not 0 < track.tokens <= new or track.tokens % CHUNK and track.tokens != new:
                raise PlanError(
                    f"row {number} of {new} tokens is to leave its state after {track.tokens} in "
                    f"slot {track.slot}, but prefill knows its state only every {CHUNK} tokens and "
                    "at the end. Nothing was computed. Track at one of these."
                )
        pending = batch.pending.inputs[number] if batch.pending else 0
        rows.append(Row(start, start + new, slot, tracks, pending))
        start += new
    return tuple(rows)
