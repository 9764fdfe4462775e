"""Copy, clear and scatter of whole states: one launch per component, all layers in it."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import KernelError, check_index, check_memory

BLOCK = 2048  # elements of a program


@triton.jit
def copy_kernel(
    state, source, target, stride_l, stride_slot, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    i_b, i_n, i_l = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    from_slot = tl.load(source + i_n).to(tl.int64)
    to_slot = tl.load(target + i_n).to(tl.int64)
    if (from_slot == 0) | (to_slot == 0):
        return
    o_b = i_b * BLOCK + tl.arange(0, BLOCK)
    p_from = state + i_l * stride_l + from_slot * stride_slot + o_b
    p_to = state + i_l * stride_l + to_slot * stride_slot + o_b
    tl.store(p_to, tl.load(p_from, mask=o_b < SIZE), mask=o_b < SIZE)


@triton.jit
def clear_kernel(state, slots, stride_l, stride_slot, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    i_b, i_n, i_l = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        return
    o_b = i_b * BLOCK + tl.arange(0, BLOCK)
    p_to = state + i_l * stride_l + slot * stride_slot + o_b
    tl.store(p_to, tl.zeros([BLOCK], state.dtype.element_ty), mask=o_b < SIZE)


@triton.jit
def scatter_kernel(
    state,
    stepped,
    rows,
    steps,
    slots,
    stride_l,
    stride_slot,
    stepped_l,
    stepped_row,
    stepped_step,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i_b, i_n, i_l = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    step = tl.load(steps + i_n).to(tl.int64)
    slot = tl.load(slots + i_n).to(tl.int64)
    if (step < 0) | (slot == 0):
        return
    row = tl.load(rows + i_n).to(tl.int64)
    o_b = i_b * BLOCK + tl.arange(0, BLOCK)
    p_from = stepped + i_l * stepped_l + row * stepped_row + step * stepped_step + o_b
    p_to = state + i_l * stride_l + slot * stride_slot + o_b
    tl.store(p_to, tl.load(p_from, mask=o_b < SIZE), mask=o_b < SIZE)


def copy(states: Sequence[Tensor], source: Tensor, target: Tensor) -> None:
    """See `slotscope.kernels.state.copy`."""
    for state in states:
        check_index("source", source, len(source), state)
        check_index("target", target, len(source), state)
        grid, size = _launch(state, len(source))
        if 0 not in grid:
            copy_kernel[grid](state, source, target, *state.stride()[:2], size, BLOCK)


def clear(states: Sequence[Tensor], slots: Tensor) -> None:
    """See `slotscope.kernels.state.clear`."""
    for state in states:
        check_index("slots", slots, len(slots), state)
        grid, size = _launch(state, len(slots))
        if 0 not in grid:
            clear_kernel[grid](state, slots, *state.stride()[:2], size, BLOCK)


def scatter(
    components: Sequence[tuple[Tensor, Tensor]], rows: Tensor, steps: Tensor, slots: Tensor
) -> None:
    """See `slotscope.kernels.state.scatter`; `components` are pairs (state, its steps)."""
    for state, stepped in components:
        for name, index in (("rows", rows), ("steps", steps), ("slots", slots)):
            check_index(name, index, len(slots), state)
        _check_pair(state, stepped)
        grid, size = _launch(state, len(slots))
        if 0 not in grid:
            strides = (*state.stride()[:2], *stepped.stride()[:3])
            scatter_kernel[grid](state, stepped, rows, steps, slots, *strides, size, BLOCK)


def _launch(state: Tensor, count: int) -> tuple[tuple[int, int, int], int]:
    """The grid for `count` slots of all layers, and the elements of one layer's slot."""
    check_memory("state", state, state.ndim - 2)
    size = state[0, 0].numel()
    return (triton.cdiv(size, BLOCK), count, state.shape[0]), size


def _check_pair(state: Tensor, stepped: Tensor) -> None:
    check_memory("steps", stepped, state.ndim - 2)
    same = (state.dtype, state.device, state.shape[0], state.shape[2:])
    if same != (stepped.dtype, stepped.device, stepped.shape[0], stepped.shape[3:]):
        raise KernelError(
            f"A state of {tuple(state.shape)} {state.dtype} on {state.device} can't take steps of"
            f" {tuple(stepped.shape)} {stepped.dtype} on {stepped.device}: layers, inner shape,"
            " dtype and device must be equal."
        )
