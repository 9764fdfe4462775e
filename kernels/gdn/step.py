"""One token of the gated delta rule for every row: a program per row, head and block of V."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels import launch


@triton.jit
def advance(b_s, b_q, b_k, b_v, b_g, b_beta):
    """One token: states [BK, BV], q and k [BK], v [BV], scalars g and beta; state and output."""
    b_s *= tl.exp(b_g)
    b_error = b_beta * (b_v - tl.sum(b_s * b_k[:, None], 0))
    b_s += b_k[:, None] * b_error[None, :]
    return b_s, tl.sum(b_s * b_q[:, None], 0)


@triton.jit
def gdn_step_kernel(
    q,
    k,
    v,
    g,
    beta,
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
        tl.load(q + key * K + o_k, mask=m_k, other=0).to(SUM),
        tl.load(k + key * K + o_k, mask=m_k, other=0).to(SUM),
        tl.load(v + row * V + o_v, mask=m_v, other=0).to(SUM),
        tl.load(g + row).to(SUM),
        tl.load(beta + row).to(SUM),
    )
    tl.store(p_s, b_s.to(state.dtype.element_ty), mask=m_s)
    tl.store(o + row * V + o_v, b_o.to(o.dtype.element_ty), mask=m_v)


def gdn_step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.gdn.gdn_step`."""
    return launch.step(gdn_step_kernel, (q, k, v, g, beta), state, slots, ())
