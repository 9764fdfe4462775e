"""Digest of whole states: a sum of word hashes, so programs may add theirs in any order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import check_index, check_memory

from .reference import FIRST, LOW, SECOND

BLOCK = 4096  # words of a program


@triton.jit
def digest_kernel(
    state,
    slots,
    total,
    first,
    words,
    units,
    stride_l,
    stride_slot,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    LOW: tl.constexpr,
    UNITS_PER_WORD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i_b, i_n, i_l = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        return
    o_w = i_b * BLOCK + tl.arange(0, BLOCK)
    b_word = tl.zeros([BLOCK], tl.int64)
    for part in tl.static_range(UNITS_PER_WORD):
        o_u = o_w * UNITS_PER_WORD + part
        p_u = state + i_l * stride_l + slot * stride_slot + o_u
        b_u = tl.load(p_u, mask=o_u < units, other=0).to(tl.int64)
        b_word |= (b_u & (LOW >> (32 - 32 // UNITS_PER_WORD))) << (part * 32 // UNITS_PER_WORD)
    b_mixed = (((first + i_l * words + o_w) << 32) | b_word) * FIRST
    b_mixed ^= (b_mixed >> 32) & LOW
    b_mixed *= SECOND
    b_mixed ^= (b_mixed >> 32) & LOW
    tl.atomic_add(total + i_n, tl.sum(tl.where(o_w < words, b_mixed, 0)), sem="relaxed")


def digest(states: Sequence[Tensor], slots: Tensor) -> Tensor:
    """See `slotscope.kernels.state.digest`."""
    total = torch.zeros(len(slots), dtype=torch.int64, device=slots.device)
    first = 0
    for state in states:
        check_index("slots", slots, len(slots), state)
        check_memory("state", state, state.ndim - 2)
        data, units_per_word = _units(state)
        layers, _, units = data.shape
        words = triton.cdiv(units, units_per_word)
        grid = (triton.cdiv(words, BLOCK), len(slots), layers)
        if 0 not in grid:
            digest_kernel[grid](
                data,
                slots,
                total,
                first,
                words,
                units,
                *data.stride()[:2],
                FIRST,
                SECOND,
                LOW,
                units_per_word,
                BLOCK,
            )
        first += layers * words
    return total


def _units(state: Tensor) -> tuple[Tensor, int]:
    """The state as [L, slots, units], in the widest units that it divides into; units in a word."""
    data = state.flatten(2)
    extents = (data.shape[2], *data.stride()[:2], data.storage_offset())
    for unit, units_per_word in ((torch.int32, 1), (torch.int16, 2)):
        if all(extent * state.itemsize % unit.itemsize == 0 for extent in extents):
            return data.view(unit), units_per_word
    return data.view(torch.int8), 4
