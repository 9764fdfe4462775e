"""One token of the gated delta rule for every row: a program per row, head and block of V."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from slotscope.kernels.checks import KernelError, check_index, check_like, check_memory

# A program's part of a state, in its registers. With two warps it is half of what they have;
# measured on an H200: twice as much spills, half as much moves 5 % fewer bytes in a second.
BLOCK_BYTES, WARPS = 32 * 1024, 2


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
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    check_inputs(q, k, v, g, beta, state, slots)
    if o.numel():
        sizes = constants(q, v, state)
        grid = (triton.cdiv(sizes["V"], sizes["BV"]), sizes["HV"], len(slots))
        inputs = (x.contiguous() for x in (q, k, v, g, beta))
        gdn_step_kernel[grid](*inputs, state, slots, o, state.stride(0), **sizes)
    return o


def check_inputs(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, slots: Tensor
) -> None:
    """Refuse inputs that don't fit each other and the state."""
    outer, (heads, size) = tuple(v.shape[:-2]), v.shape[-2:]
    if heads % q.shape[-2]:
        raise KernelError(
            f"{heads} value heads can't share {q.shape[-2]} key heads; value head h reads key head"
            " h // (HV // HK), so HV must be a multiple of HK."
        )
    check_memory("state", state, 3)
    check_like("state", state, (state.shape[0], heads, q.shape[-1], size), state)
    check_like("q", q, (*outer, *q.shape[-2:]), state)
    check_like("k", k, tuple(q.shape), state)
    check_like("v", v, tuple(v.shape), state)
    check_like("g", g, (*outer, heads), state)
    check_like("beta", beta, (*outer, heads), state)
    check_index("slots", slots, outer[0], state)


def constants(q: Tensor, v: Tensor, state: Tensor) -> dict[str, int]:
    """The sizes that step and verify are compiled for."""
    (key_heads, key_size), (heads, size) = q.shape[-2:], v.shape[-2:]
    block_k, wide = triton.next_power_of_2(key_size), state.dtype == torch.float64
    fitting = max(1, BLOCK_BYTES // (block_k * (8 if wide else 4)))
    return {
        "HK": key_heads,
        "HV": heads,
        "K": key_size,
        "V": size,
        "BK": block_k,
        "BV": min(fitting, triton.next_power_of_2(size)),
        "SUM": tl.float64 if wide else tl.float32,
        "num_warps": WARPS,
    }
