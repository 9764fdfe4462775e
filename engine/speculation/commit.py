"""The one prepare and the one commit of every drafter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.grids import Grids
from slotscope.engine.states import States


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """What a verify may write beside its scratch rows, fixed before it runs."""

    rows: Tensor  # [B] int64 scratch rows, which are the requests' own rows
    live: Tensor  # [B] int64 live slots; 0 = pad
    track: Tensor  # [B] int64 slots for a crossing's state; 0 = none


def prepare(rows: Tensor, live: list[int], track: list[int | None]) -> VerifyPlan:
    """A fresh plan for this verify alone: no earlier forward's tracking survives in it."""
    slots = torch.tensor([live, [slot or 0 for slot in track]], device=rows.device)
    return VerifyPlan(rows, slots[0], slots[1])


def commit(states: States, plan: VerifyPlan, grids: Grids, before: Tensor, accept: Tensor) -> None:
    """Move each live state by what was accepted, and save the state at a crossed track depth.

    The verify left the state after token d of row r in scratch [r, d]. With `accept` tokens taken
    the live state is step accept - 1; a crossing at depth t is step t - before - 1.

    Args:
        before: [B] int64, tokens in the live state before the verify.
        accept: [B] int64, >= 1.
    """
    after = before + accept
    depth = after // grids.track * grids.track
    crossing = torch.where(depth > before, depth - before - 1, -1)
    states.scatter(
        torch.cat([plan.rows, plan.rows]),
        torch.cat([accept - 1, crossing]),
        torch.cat([plan.live, plan.track]),
    )
