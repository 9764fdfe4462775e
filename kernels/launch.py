"""How the Triton kernels of all recurrences are launched: checked, and a program per block of V.

A kernel's program holds BV columns of one state [K, V] in registers; columns are independent.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .checks import KernelError, check_index, check_like, check_memory
from .recurrence import Inputs

# Bytes of a state that a program holds in its registers, and its warps; measured on an H200. A step
# moves most with half of two warps' registers: twice as much spills, half as much moves 5 % fewer
# bytes in a second. A verify waits for each token's sums, and many small programs hide that best.
STEP, VERIFY = (32 * 1024, 2), (8 * 1024, 1)


def step(
    kernel: Any, inputs: Inputs, state: Tensor, slots: Tensor, gate: tuple[int, ...]
) -> Tensor:
    """One token for each row; `gate` is what a head's decay has beyond [N, HV]: () or (K,)."""
    q, _, v, _, _ = inputs
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    _check(inputs, state, slots, gate)
    if o.numel():
        sizes = _constants(q, v, state, *STEP)
        grid = (triton.cdiv(sizes["V"], sizes["BV"]), sizes["HV"], len(slots))
        packed = (x.contiguous() for x in inputs)
        kernel[grid](*packed, state, slots, o, state.stride(0), **sizes)
    return o


def verify(
    kernel: Any,
    inputs: Inputs,
    state: Tensor,
    slots: Tensor,
    steps: Tensor,
    rows: Tensor,
    parents: Tensor | None,
    gate: tuple[int, ...],
) -> Tensor:
    """A chain or tree of draft tokens for each row; `gate` as in `step`.

    Triton compiles chains, where `parents` is None, without a trace of trees.
    """
    q, _, v, _, _ = inputs
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    _check(inputs, state, slots, gate)
    check_index("rows", rows, len(slots), state)
    check_memory("steps", steps, 3)
    tokens = v.shape[1]
    check_like("steps", steps[:, :tokens], (len(steps), tokens, *state.shape[1:]), state)
    if parents is not None:
        check_like("parents", parents, (len(slots), tokens), state)
        parents = parents.contiguous()
    if o.numel():
        sizes = _constants(q, v, state, *VERIFY)
        grid = (triton.cdiv(sizes["V"], sizes["BV"]), sizes["HV"], len(slots))
        packed = (x.contiguous() for x in inputs)
        strides = (state.stride(0), *steps.stride()[:2])
        memory = (state, slots, steps, rows, parents)
        kernel[grid](*packed, *memory, o, tokens, *strides, **sizes)
    return o


def _check(inputs: Inputs, state: Tensor, slots: Tensor, gate: tuple[int, ...]) -> None:
    """Refuse inputs that don't fit each other and the state."""
    q, k, v, g, beta = inputs
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
    check_like("g", g, (*outer, heads, *gate), state)
    check_like("beta", beta, (*outer, heads), state)
    check_index("slots", slots, outer[0], state)


def _constants(q: Tensor, v: Tensor, state: Tensor, block_bytes: int, warps: int) -> dict[str, int]:
    """The sizes that kernels are compiled for."""
    (key_heads, key_size), (heads, size) = q.shape[-2:], v.shape[-2:]
    block_k, wide = triton.next_power_of_2(key_size), state.dtype == torch.float64
    fitting = max(1, block_bytes // (block_k * (8 if wide else 4)))
    return {
        "HK": key_heads,
        "HV": heads,
        "K": key_size,
        "V": size,
        "BK": block_k,
        "BV": min(fitting, triton.next_power_of_2(size)),
        "SUM": tl.float64 if wide else tl.float32,
        "num_warps": warps,
    }
