"""The one prepare and the one commit of every drafter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.grids import Grids
from slotscope.engine.states import States

from .accept import Accepted


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


def commit(
    states: States, plan: VerifyPlan, grids: Grids, before: Tensor, accepted: Accepted
) -> None:
    """Move each live state by what was accepted, and save the state at a crossed track depth.

    The verify left the state after node n of row r in scratch [r, n]. A node is no depth: the
    state at depth before + d is that of the path's d-th node, the root being the first.

    Args:
        before: [B] int64, tokens in the live state before the verify.
    """
    after = before + accepted.length
    depth = after // grids.track * grids.track
    last = accepted.index.gather(1, accepted.length[:, None] - 1)[:, 0]
    crossed = accepted.index.gather(1, (depth - before - 1).clamp(min=0)[:, None])[:, 0]
    states.scatter(
        torch.cat([plan.rows, plan.rows]),
        torch.cat([last, torch.where((depth > before) & grids.saves, crossed, -1)]),
        torch.cat([plan.live, plan.track]),
    )
