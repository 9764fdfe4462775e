"""What every recurrence's kernels and references must do, whatever its formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from slotscope.kernels.recurrence import followed
from slotscope.kernels.testing import (
    Inputs,
    assert_close,
    assert_untouched,
    memory,
    random_trees,
    shuffled,
)

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
Operator = Callable[..., Any]
Make = Callable[..., Inputs]
Token = Callable[[Inputs, int, Tensor], tuple[Tensor, Tensor]]
"""A recurrence as its paper writes it: from one token of one row, a head and that head's state
[K, V], to what is read [V] and the next state."""


def check_step(
    kernel: Operator,
    reference: Operator,
    make: Make,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Kernel and reference agree; a pad row's zeros, and no other slot, are written."""
    rows, HK, HV, K, V = sizes
    inputs = make((rows,), HK, HV, K, V, dtype=dtype, device=device)
    state = memory(rows + 4, HV, K, V, pads=0, dtype=dtype, device=device)
    slots = shuffled(rows, len(state), device)
    expected_state, before = state.clone(), state.clone()
    expected = reference(*inputs, expected_state, slots)

    o = kernel(*inputs, state, slots)

    assert_close(o, expected)
    assert_close(state, expected_state)
    assert_untouched(before, state, slots[:-1])


def check_verify(
    kernel: Operator,
    reference: Operator,
    make: Make,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Kernel and reference agree; the state is read only, and no other scratch row is written."""
    rows, D, HK, HV, K, V = sizes
    kind: dict[str, Any] = {"dtype": dtype, "device": device}
    inputs = make((rows, D), HK, HV, K, V, **kind)
    state = memory(rows + 3, HV, K, V, pads=0, **kind)
    steps = memory(rows + 2, D + 1, HV, K, V, pads=slice(None), **kind)  # longer than the chain
    slots, scratch = shuffled(rows, len(state), device), shuffled(rows, len(steps), device)
    before, expected_steps = state.clone(), steps.clone()
    expected = reference(*inputs, state, slots, expected_steps, scratch)

    o = kernel(*inputs, state, slots, steps, scratch)

    assert_close(o, expected)
    assert_close(steps, expected_steps)
    assert_untouched(before, state, slots[:0])
    assert_untouched(torch.full_like(steps, torch.nan), steps, scratch[:-1])


def check_verify_by_steps(verify: Operator, step: Operator, make: Make) -> None:
    """A chain leaves what one step after the other leaves."""
    rows, D, HK, HV, K, V = 4, 3, 2, 4, 5, 6
    inputs = make((rows, D), HK, HV, K, V, dtype=torch.float64)
    state = memory(9, HV, K, V, pads=0, dtype=torch.float64)
    steps = memory(6, D, HV, K, V, pads=slice(None), dtype=torch.float64)
    slots, scratch = shuffled(rows, 9), shuffled(rows, 6)

    o = verify(*inputs, state, slots, steps, scratch)

    for d in range(D):
        assert_close(o[:, d], step(*inputs.at(slice(None), d), state, slots))
        assert_close(steps[scratch[:-1], d], state[slots[:-1]])


def check_tree(
    verify: Operator,
    step: Operator,
    make: Make,
    sizes: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Each token of a tree is a step from what its parent stored.

    Token by token, since in bfloat16 one other rounding would travel down the tree.
    """
    rows, D, HK, HV, K, V = sizes
    kind: dict[str, Any] = {"dtype": dtype, "device": device}
    inputs = make((rows, D), HK, HV, K, V, **kind)
    state = memory(rows + 3, HV, K, V, pads=0, **kind)
    steps = memory(rows + 2, D + 1, HV, K, V, pads=slice(None), **kind)
    slots, scratch = shuffled(rows, len(state), device), shuffled(rows, len(steps), device)
    parents, before = random_trees(rows, D, device), state.clone()

    o = verify(*inputs, state, slots, steps, scratch, parents)

    places, seats = scratch[:-1], torch.arange(1, rows, device=device)
    for d in range(D):
        after = state[:rows].clone()
        after[1:] = followed(state[slots[:-1]], steps, places, parents[:-1, d])
        assert_close(o[:-1, d], step(*inputs.at(slice(-1), d), after, seats))
        assert_close(steps[places, d], after[1:])
    assert not o[-1].any()
    assert_untouched(before, state, slots[:0])
    assert_untouched(torch.full_like(steps, torch.nan), steps, places)


def check_formula(step: Operator, make: Make, token: Token, dtype: torch.dtype) -> None:
    """The reference's step is the formula, in every row and head."""
    rows, HK, HV, K, V = 4, 2, 6, 5, 7
    inputs = make((rows,), HK, HV, K, V, dtype=dtype)
    state, slots = memory(9, HV, K, V, pads=0, dtype=dtype), shuffled(rows, 9)
    before = state.clone()

    o = step(*inputs, state, slots)

    for row, slot in enumerate(slots[:-1].tolist()):
        exact = inputs.at(row).each(Tensor.double)
        for head in range(HV):
            read, after = token(exact, head, before[slot, head].double())
            assert_close(o[row, head], read.to(dtype))
            assert_close(state[slot, head], after.to(dtype))
    assert o[-1].eq(0).all()
    assert_untouched(before, state, slots[:-1])


def check_chunk(chunk: Operator, step: Operator, make: Make, tokens: int, size: int) -> None:
    """The chunked form's outputs, and its states at every chunk's end, in float64 and float32."""
    for dtype, bound in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        inputs = make((tokens,), 2, 4, 6, 10, dtype=dtype)
        initial = memory(4, 6, 10, pads=slice(0), dtype=dtype)
        before = initial.clone()
        state, slot = torch.stack((initial, initial)), torch.tensor([1])
        outputs, each = [], []
        for t in range(tokens):
            outputs.append(step(*inputs.at(slice(t, t + 1)), state, slot))
            each.append(state[1].clone())

        o, states = chunk(*inputs, initial, size)

        ends = [min(end, tokens) - 1 for end in range(size, tokens + size, size)]
        torch.testing.assert_close(o, torch.cat(outputs), rtol=0, atol=bound)
        torch.testing.assert_close(states, torch.stack(each)[ends], rtol=0, atol=bound)
        assert torch.equal(initial, before)
