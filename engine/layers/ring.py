"""The replay ring: a decode step that keeps its inputs beside the state in place of moving it.

The state of a slot then stays some tokens behind, and is caught up by feeding it what the ring
kept, in the order in which it came: the very sums that the state would have taken without a ring,
so every answer is the same to the last bit. SGLang's ReplaySSM reads its output by a closed form,
without the state in between; that saves memory traffic on a GPU, which this does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from slotscope.engine.forward import Pending

Step = Callable[..., Tensor]
"""A recurrence's step: (*fed, states, slots), in place, as the folders of kernels describe it."""


def buffered_step(
    step: Step, fed: Sequence[Tensor], ssm: Tensor, ring: Tensor, slots: Tensor, pending: Pending
) -> Tensor:
    """One token a row, as `step` itself, from states that are behind.

    Args:
        fed: five tensors [B, ...], what `step` takes.
        ssm: [slots, heads, K, V]; of rows that fold their slots change.
        ring: [slots, length, width]; of all other rows their slots get one input more.
        slots: [B] int64; 0 is a pad row.
    Returns:
        [B, heads, V].
    """
    # Row b's state is current[b + 1]: `step` takes row 0 for padding.
    current = torch.cat([torch.zeros_like(ssm[:1]), ssm[slots]])
    rows = torch.arange(1, len(slots) + 1, device=slots.device) * (slots != 0)
    count = len(pending.inputs)
    waiting = torch.tensor(pending.inputs, device=slots.device)
    behind = torch.cat([waiting, waiting.new_zeros(len(slots) - count)])
    kept = ring[slots]
    for at in range(max(pending.inputs)):
        step(*_unpacked(kept[:, at], fed), current, rows * (at < behind))
    seen = step(*fed, current, rows)
    folding = torch.tensor(pending.folds, device=slots.device).nonzero()[:, 0]
    staying = torch.tensor([not each for each in pending.folds], device=slots.device).nonzero()[
        :, 0
    ]
    ssm.index_copy_(0, slots[folding], current[1:][folding])
    packed = _packed(fed)
    ring[slots[staying], waiting[staying], : packed.shape[1]] = packed[staying]
    return seen


def caught_up(
    step: Step, fed: Sequence[Tensor], state: Tensor, ring: Tensor, inputs: int
) -> Tensor:
    """A state [heads, K, V] with the first `inputs` of a slot's ring [length, width] folded in.

    `fed` is what comes behind, [T, ...] each: the ring's inputs have these shapes.
    """
    current = torch.stack([torch.zeros_like(state), state])
    row = torch.ones(1, dtype=torch.int64, device=state.device)
    for at in range(inputs):
        step(*_unpacked(ring[at : at + 1], [each[:1] for each in fed]), current, row)
    return current[1]


def _packed(fed: Sequence[Tensor]) -> Tensor:
    """[B, at most ring width]: all but the first, the query, which moves no state."""
    return torch.cat([each.flatten(1) for each in fed[1:]], 1)


def _unpacked(packed: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Rows of a ring [B, ring width] as what a step is fed; any query will do."""
    sizes = [each[0].numel() for each in like[1:]]
    parts = packed[:, : sum(sizes)].split(sizes, 1)
    shaped = [part.reshape(each.shape) for part, each in zip(parts, like[1:], strict=True)]
    return [like[0], *shaped]
