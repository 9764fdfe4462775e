"""The causal convolution over one sequence."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import check_like

from .update import check_filter, silu, summed_in
from .verify import joined

BLOCK_T, BLOCK_C = 32, 64


@triton.jit
def conv_prefill_kernel(
    x,
    initial,
    weight,
    bias,
    y,
    T,
    C: tl.constexpr,
    W: tl.constexpr,
    BT: tl.constexpr,
    BC: tl.constexpr,
    SUM: tl.constexpr,
):
    i_c, i_t = tl.program_id(0), tl.program_id(1).to(tl.int64)
    o_t, o_c = i_t * BT + tl.arange(0, BT)[:, None], i_c * BC + tl.arange(0, BC)[None, :]
    m_c = o_c < C
    mask = (o_t < T) & m_c  # [BT, BC]
    b_y = tl.zeros([BT, BC], SUM)
    if bias is not None:
        b_y += tl.load(bias + o_c, mask=m_c, other=0).to(SUM)
    for tap in tl.static_range(W):
        b_x = joined(initial, x, o_t + tap, o_c, mask, C, W, SUM)
        b_y += b_x * tl.load(weight + o_c * W + tap, mask=m_c, other=0).to(SUM)
    tl.store(y + o_t * C + o_c, silu(b_y).to(y.dtype.element_ty), mask=mask)


def conv_prefill(x: Tensor, initial: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """See `slotscope.kernels.conv.conv_prefill`; returns y alone."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    check_filter(weight, bias, initial)
    check_like("x", x, (len(x), initial.shape[0]), initial)
    if y.numel():
        channels, taps = weight.shape
        conv_prefill_kernel[(triton.cdiv(channels, BLOCK_C), triton.cdiv(len(x), BLOCK_T))](
            x.contiguous(),
            initial,
            weight.contiguous(),
            bias,
            y,
            len(x),
            channels,
            taps,
            BLOCK_T,
            BLOCK_C,
            summed_in(x),
        )
    return y
