"""Snapshot: a batch as it was launched."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .batch import Batch, Launch, Result
from .forward import Forward
from .speculation.accept import Accepted
from .speculation.commit import VerifyPlan
from .speculation.draft import Draft


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a forward needs to know of rows, copied: a pipeline stage computes it after other
    batches were launched, and a result comes back when rows may name other things."""

    launch: Launch
    forward: Forward
    rows: Tensor  # [B] int64, padding included
    plan: VerifyPlan | None = None  # of a verify
    scratch: tuple[int, ...] = ()  # of a verify: scratch row of each item, as the host knows it
    draft: Draft | None = None  # of a verify, padding included

    @property
    def batch(self) -> Batch:
        """What was launched."""
        return self.launch.batch

    @property
    def count(self) -> int:
        """Rows that are no padding; they come first."""
        return len(self.batch.items)

    def path(self, result: Result) -> Tensor:
        """[B, P] int64: the nodes that a verify took, of padding those of a chain."""
        width = result.accept_index.shape[1]
        path = torch.arange(width, device=self.rows.device).repeat(len(self.rows), 1)
        path[: self.count] = Accepted(result.accept_index, result.accept).path
        return path
