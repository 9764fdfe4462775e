"""One token of Mamba2's recurrence for every row: a program per row, head and block of V."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels import launch


@triton.jit
def advance(b_s, b_c, b_b, b_x, b_g, b_dt):
    """One token: states [BK, BV], c and b [BK], x [BV], scalars g and dt; state and output."""
    b_s = b_s * tl.exp(b_g) + b_b[:, None] * (b_dt * b_x)[None, :]
    return b_s, tl.sum(b_s * b_c[:, None], 0)


@triton.jit
def mamba2_step_kernel(
    c,
    b,
    x,
    g,
    dt,
    state,
    slots,
    o,
    stride_slot,
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
    row = i_n * HV + i_h
    slot = tl.load(slots + i_n).to(tl.int64)
    if slot == 0:
        tl.store(o + row * V + o_v, tl.zeros([BV], o.dtype.element_ty), mask=m_v)
        return
    key = i_n * HK + i_h // (HV // HK)
    p_s = state + slot * stride_slot + (i_h * K + o_k[:, None]) * V + o_v[None, :]  # [BK, BV]
    m_s = m_k[:, None] & m_v[None, :]
    b_s, b_o = advance(
        tl.load(p_s, mask=m_s, other=0).to(SUM),
        tl.load(c + key * K + o_k, mask=m_k, other=0).to(SUM),
        tl.load(b + key * K + o_k, mask=m_k, other=0).to(SUM),
        tl.load(x + row * V + o_v, mask=m_v, other=0).to(SUM),
        tl.load(g + row).to(SUM),
        tl.load(dt + row).to(SUM),
    )
    tl.store(p_s, b_s.to(state.dtype.element_ty), mask=m_s)
    tl.store(o + row * V + o_v, b_o.to(o.dtype.element_ty), mask=m_v)


def mamba2_step(
    c: Tensor, b: Tensor, x: Tensor, g: Tensor, dt: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.mamba2.mamba2_step`."""
    return launch.step(mamba2_step_kernel, (c, b, x, g, dt), state, slots, ())
