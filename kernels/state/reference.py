"""Whole states in torch: what the kernels in `moves.py` and `digests.py` must equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

# Odd, so that a multiplication is a bijection of 64-bit words; below 2**63, so that Python, torch
# and Triton all take them as int64. From Knuth's MMIX generator and from Vigna's xorshift64*.
FIRST = 0x5851F42D4C957F2D
SECOND = 0x2545F4914F6CDD1D
LOW = 0xFFFFFFFF


def copy(states: Sequence[Tensor], source: Tensor, target: Tensor) -> None:
    """See `slotscope.kernels.state.copy`."""
    kept = ((source != 0) & (target != 0)).nonzero().flatten()
    source, target = source[kept], target[kept]
    for state in states:
        state.index_copy_(1, target, state.index_select(1, source))


def clear(states: Sequence[Tensor], slots: Tensor) -> None:
    """See `slotscope.kernels.state.clear`."""
    slots = slots[slots != 0]
    for state in states:
        state.index_fill_(1, slots, 0)


def scatter(
    components: Sequence[tuple[Tensor, Tensor]], rows: Tensor, steps: Tensor, slots: Tensor
) -> None:
    """See `slotscope.kernels.state.scatter`; `components` are pairs (state, its steps)."""
    kept = ((steps >= 0) & (slots != 0)).nonzero().flatten()
    rows, steps, slots = rows[kept], steps[kept], slots[kept]
    for state, stepped in components:
        chosen = stepped.flatten(1, 2).index_select(1, rows * stepped.shape[2] + steps)
        state.index_copy_(1, slots, chosen)


def digest(states: Sequence[Tensor], slots: Tensor) -> Tensor:
    """See `slotscope.kernels.state.digest`."""
    total = torch.zeros(len(slots), dtype=torch.int64, device=slots.device)
    first = 0
    for state in states:
        words = _words(state[:, slots].transpose(0, 1))
        end = first + words.shape[1]
        total += _mixed(torch.arange(first, end, device=slots.device), words).sum(1)
        first = end
    return total.masked_fill_(slots == 0, 0)


def _words(rows: Tensor) -> Tensor:
    """Rows [N, L, ...] as [N, words] int64 in 0..2**32-1; each layer is padded to whole words."""
    data = rows.contiguous().flatten(2).view(torch.uint8)  # [N, L, bytes]
    data = functional.pad(data, (0, -data.shape[2] % 4)).view(torch.int32)
    return data.flatten(1).to(torch.int64) & LOW


def _mixed(position: Tensor, word: Tensor) -> Tensor:
    """The hash of each (position, word), both below 2**32: a bijection of the 64-bit pair."""
    mixed = ((position << 32) | word) * FIRST
    mixed ^= (mixed >> 32) & LOW
    mixed *= SECOND
    return mixed ^ ((mixed >> 32) & LOW)
