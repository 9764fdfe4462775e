"""What training minimises."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .model import Model

DRAFT_STEPS = 3


def losses(model: Model, rows: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Mean cross entropy, in nats a byte, of the trunk and of each draft step.

    Args:
        rows: [B, T + 2] int64; T tokens are read, the last two are targets only.
    """
    size = rows.shape[1] - 2
    hidden = model.model(rows[:, :size])
    trunk = _entropy(model, hidden, rows[:, 1 : size + 1])
    return trunk, draft_losses(model, hidden, rows)


def draft_losses(model: Model, hidden: Tensor, rows: Tensor) -> list[Tensor]:
    """The draft steps' part of `losses`, given the trunk's hidden [B, T, D]."""
    embedded = model.model.embed_tokens(rows[:, 1:-1])
    drafted = model.mtp.unroll(hidden, embedded, DRAFT_STEPS)
    # The first rows of a later step started before the sequence and mean nothing.
    return [_entropy(model, out[:, step:], rows[:, 2 + step :]) for step, out in enumerate(drafted)]


def _entropy(model: Model, hidden: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model.logits(hidden).flatten(0, 1).float(), targets.flatten())
