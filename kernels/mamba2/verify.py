"""Draft tokens through Mamba2's recurrence: in a chain the state stays in registers for all D."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels import launch

from .step import advance


@triton.jit
def mamba2_verify_kernel(
    c,
    b,
    x,
    g,
    dt,
    state,
    slots,
    steps,
    rows,
    parents,
    o,
    D,
    stride_slot,
    stride_row,
    stride_step,
    HK: tl.constexpr,
    HV: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    SUM: tl.constexpr,
):
    i_v, i_h, i_n = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    o_k, o_v = tl.arange(0, BK), i_v * BV + tl.arange(0, BV)
    m_k, m_v = o_k < K, o_v < V
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        for d in range(D):
            p_o = o + ((i_n * D + d) * HV + i_h) * V + o_v
            tl.store(p_o, tl.zeros([BV], o.dtype.element_ty), mask=m_v)
        return
    o_s = (i_h * K + o_k[:, None]) * V + o_v[None, :]  # [BK, BV]
    m_s = m_k[:, None] & m_v[None, :]
    p_s = state + slot * stride_slot + o_s
    b_s = tl.load(p_s, mask=m_s, other=0).to(SUM)
    p_steps = steps + tl.load(rows + i_n).to(tl.int64) * stride_row + o_s
    for d in range(D):
        row = (i_n * D + d) * HV + i_h
        key = (i_n * D + d) * HK + i_h // (HV // HK)
        if parents is not None:
            # What is read may have been stored by another thread of this program.
            tl.debug_barrier()
            parent = tl.load(parents + i_n * D + d).to(tl.int64)
            if parent < 0:
                b_s = tl.load(p_s, mask=m_s, other=0).to(SUM)
            else:
                b_s = tl.load(p_steps + parent * stride_step, mask=m_s, other=0).to(SUM)
        b_s, b_o = advance(
            b_s,
            tl.load(c + key * K + o_k, mask=m_k, other=0).to(SUM),
            tl.load(b + key * K + o_k, mask=m_k, other=0).to(SUM),
            tl.load(x + row * V + o_v, mask=m_v, other=0).to(SUM),
            tl.load(g + row).to(SUM),
            tl.load(dt + row).to(SUM),
        )
        tl.store(p_steps + d * stride_step, b_s.to(steps.dtype.element_ty), mask=m_s)
        tl.store(o + row * V + o_v, b_o.to(o.dtype.element_ty), mask=m_v)


def mamba2_verify(
    c: Tensor,
    b: Tensor,
    x: Tensor,
    g: Tensor,
    dt: Tensor,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """See `slotscope.kernels.mamba2.mamba2_verify`."""
    inputs = (c, b, x, g, dt)
    return launch.verify(mamba2_verify_kernel, inputs, state, slots, steps, rows, parents, ())
