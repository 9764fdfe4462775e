"""One token of the causal convolution for every row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import KernelError, check_index, check_like, check_memory

# One channel for each of the 128 threads of a program, so that no thread reads a column of a
# window after another thread has shifted it.
BLOCK, WARPS = 128, 4


@triton.jit
def silu(b_y):
    return b_y / (1 + tl.exp(-b_y))


@triton.jit
def conv_update_kernel(
    x,
    state,
    weight,
    bias,
    slots,
    y,
    stride_slot,
    C: tl.constexpr,
    W: tl.constexpr,
    BC: tl.constexpr,
    SUM: tl.constexpr,
):
    i_c, i_n = tl.program_id(0), tl.program_id(1).to(tl.int64)
    o_c = i_c * BC + tl.arange(0, BC)
    m_c = o_c < C
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        tl.store(y + i_n * C + o_c, tl.zeros([BC], y.dtype.element_ty), mask=m_c)
        return
    p_s = state + slot * stride_slot + o_c * (W - 1)
    b_x = tl.load(x + i_n * C + o_c, mask=m_c, other=0)
    b_y = b_x.to(SUM) * tl.load(weight + o_c * W + W - 1, mask=m_c, other=0).to(SUM)
    if bias is not None:
        b_y += tl.load(bias + o_c, mask=m_c, other=0).to(SUM)
    for tap in tl.static_range(W - 1):
        b_s = tl.load(p_s + tap, mask=m_c, other=0)
        b_y += b_s.to(SUM) * tl.load(weight + o_c * W + tap, mask=m_c, other=0).to(SUM)
        if tap > 0:
            tl.store(p_s + tap - 1, b_s, mask=m_c)
    tl.store(p_s + W - 2, b_x.to(state.dtype.element_ty), mask=m_c)
    tl.store(y + i_n * C + o_c, silu(b_y).to(y.dtype.element_ty), mask=m_c)


def conv_update(
    x: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.conv.conv_update`."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    check_filter(weight, bias, state)
    check_like("x", x, (len(slots), state.shape[1]), state)
    check_index("slots", slots, len(slots), state)
    if y.numel():
        channels, taps = weight.shape
        conv_update_kernel[(triton.cdiv(channels, BLOCK), len(slots))](
            x.contiguous(),
            state,
            weight.contiguous(),
            bias,
            slots,
            y,
            state.stride(0),
            channels,
            taps,
            BLOCK,
            summed_in(x),
            num_warps=WARPS,
        )
    return y


def check_filter(weight: Tensor, bias: Tensor | None, state: Tensor) -> None:
    """Refuse a filter that doesn't fit windows [..., C, W-1], or windows that aren't packed."""
    channels, width = state.shape[-2:]
    if width < 1:
        raise KernelError(
            f"Windows of {width} inputs were given; a filter needs at least 2 taps, so that there"
            " is a state to keep."
        )
    check_memory("state", state, 2)
    check_like("weight", weight, (channels, width + 1), state)
    if bias is not None:
        check_like("bias", bias, (channels,), state)
        check_memory("bias", bias, 1)


def summed_in(x: Tensor) -> tl.dtype:
    """The dtype of sums: float64 for float64, else float32."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32
