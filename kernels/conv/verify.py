"""Draft tokens, a chain or a tree, through the convolution: a program per row, token, channels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import check_index, check_like, check_memory

from .update import check_filter, silu, summed_in

BLOCK = 128


@triton.jit
def joined(window, x, o_t, o_c, mask, C: tl.constexpr, W: tl.constexpr, SUM: tl.constexpr):
    """Inputs o_t of channels o_c, in the sequence that is the window [C, W-1], then x [T, C]."""
    old = tl.load(window + o_c * (W - 1) + o_t, mask=mask & (o_t < W - 1), other=0)
    new = tl.load(x + (o_t - (W - 1)) * C + o_c, mask=mask & (o_t >= W - 1), other=0)
    return tl.where(o_t < W - 1, old.to(SUM), new.to(SUM))


@triton.jit
def conv_verify_kernel(
    x,
    state,
    weight,
    bias,
    slots,
    windows,
    rows,
    parents,
    y,
    D,
    stride_slot,
    stride_row,
    stride_step,
    C: tl.constexpr,
    W: tl.constexpr,
    BC: tl.constexpr,
    SUM: tl.constexpr,
):
    i_c, i_d, i_n = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    o_c = i_c * BC + tl.arange(0, BC)
    m_c = o_c < C
    p_y = y + (i_n * D + i_d) * C + o_c
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        tl.store(p_y, tl.zeros([BC], y.dtype.element_ty), mask=m_c)
        return
    p_row = windows + tl.load(rows + i_n).to(tl.int64) * stride_row + i_d * stride_step
    p_window = state + slot * stride_slot
    b_y = tl.zeros([BC], SUM)
    if bias is not None:
        b_y += tl.load(bias + o_c, mask=m_c, other=0).to(SUM)
    # From the token up through those it follows; -1, -2, ... are the window's last, last but one.
    at = i_d.to(tl.int64)
    for back in tl.static_range(W):
        o_t = at + tl.full([BC], W - 1, tl.int64)
        b_x = joined(p_window, x + i_n * D * C, o_t, o_c, m_c, C, W, SUM)
        b_y += b_x * tl.load(weight + o_c * W + W - 1 - back, mask=m_c, other=0).to(SUM)
        if back < W - 1:
            p_w = p_row + o_c * (W - 1) + W - 2 - back
            tl.store(p_w, b_x.to(windows.dtype.element_ty), mask=m_c)
        if parents is None:
            at -= 1
        else:
            parent = tl.load(parents + i_n * D + at, mask=at >= 0, other=0).to(tl.int64)
            at = tl.where(at >= 0, parent, at - 1)
    tl.store(p_y, silu(b_y).to(y.dtype.element_ty), mask=m_c)


def conv_verify(
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    slots: Tensor,
    windows: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """See `slotscope.kernels.conv.conv_verify`."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    tokens = x.shape[1]
    check_filter(weight, bias, state)
    check_like("x", x, (len(slots), tokens, state.shape[1]), state)
    check_index("slots", slots, len(slots), state)
    check_index("rows", rows, len(slots), state)
    check_memory("windows", windows, 2)
    check_like("windows", windows[:, :tokens], (len(windows), tokens, *state.shape[1:]), state)
    if parents is not None:
        check_like("parents", parents, (len(slots), tokens), state)
        parents = parents.contiguous()
    if y.numel():
        channels, taps = weight.shape
        conv_verify_kernel[(triton.cdiv(channels, BLOCK), tokens, len(slots))](
            x.contiguous(),
            state,
            weight.contiguous(),
            bias,
            slots,
            windows,
            rows,
            parents,
            y,
            tokens,
            state.stride(0),
            *windows.stride()[:2],
            channels,
            taps,
            BLOCK,
            summed_in(x),
        )
    return y
