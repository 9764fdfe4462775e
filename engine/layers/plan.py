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


@dataclass(frozen=True, slots=True)
class Reach:
    """What new tokens may look at: for each row a rectangle, its queries against its locations."""

    locations: Tensor  # [rows, L] int64; beyond a row's end its first location, never stale memory
    mask: (
        Tensor  # [rows, 1, tokens a row, L] of the activations' dtype: 0, or -inf beyond the token
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A forward, and what follows from it for every layer."""

    batch: Forward
    angles: Angles | None  # None: the model has no positions
    reaches: tuple[Reach, ...]  # prefill: one for each row; else one for the batch
    rows: tuple[Row, ...]  # prefill only
    workspace: Workspace

    @staticmethod
    def of(batch: Forward, rotary: Rotary | None, dtype: torch.dtype, workspace: Workspace) -> Plan:
        """For activations of `dtype`."""
        angles = rotary.angles(batch.positions, dtype) if rotary else None
        if batch.kind is not Kind.PREFILL:
            return Plan(batch, angles, (_reach(batch, dtype),), (), workspace)
        return Plan(batch, angles, _prefill_reaches(batch, dtype), _rows(batch), workspace)


def _reach(batch: Forward, dtype: torch.dtype) -> Reach:
    """Rows of equal lengths: query d of a row sees its context and the new tokens up to d, or
    those of them that it descends from, or all."""
    rows, width = batch.table.shape
    new = torch.arange(batch.tokens.shape[0] // rows, device=batch.table.device)
    if batch.parents is not None:
        return _tree_reach(batch, batch.parents, len(new), dtype)
    if batch.mutual:
        new = new.new_full(new.shape, len(new) - 1)
    last = batch.contexts[:, None] + new  # [rows, tokens a row]
    index = torch.arange(width, device=batch.table.device)
    locations = torch.where(index <= last[:, -1:], batch.table, batch.table[:, :1])
    return Reach(locations, _mask(index > last[..., None], dtype)[:, None])


def _tree_reach(batch: Forward, parents: Tensor, new: int, dtype: torch.dtype) -> Reach:
    """The tree's tokens lie behind the context, in the order of their numbers."""
    width, count = batch.table.shape[1], parents.shape[1]
    # Which token of the tree a column of the table is: negative in the context, count beyond.
    node = torch.arange(width, device=batch.table.device) - batch.contexts[:, None]
    locations = torch.where(node < count, batch.table, batch.table[:, :1])
    sees = ancestry(parents)[:, -new:]  # [rows, new, count]
    inside = node.clamp(0, count - 1)[:, None].expand(-1, new, -1)
    seen = torch.where(node[:, None] < 0, True, sees.gather(2, inside) & (node < count)[:, None])
    return Reach(locations, _mask(~seen, dtype)[:, None])


def _prefill_reaches(batch: Forward, dtype: torch.dtype) -> tuple[Reach, ...]:
    """Rows of any lengths, one by one."""
    reaches = []
    for row, (context, new) in enumerate(zip(batch.contexts.tolist(), batch.lengths, strict=True)):
        total = context + new
        hidden = torch.ones(new, total, dtype=torch.bool, device=batch.table.device)
        mask = _mask(hidden.triu(context + 1), dtype)
        reaches.append(Reach(batch.table[row : row + 1, :total], mask[None, None]))
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
        rows.append(Row(start, start + new, slot, tracks))
        start += new
    return tuple(rows)
