from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from slotscope.kernels.conv import conv_update, reference, update
from slotscope.kernels.testing import assert_close, assert_untouched, conv_inputs, memory, shuffled

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
SHAPES = [
    (3, 5, 4),
    (4, 130, 2),
    pytest.param((33, 1000, 3), marks=pytest.mark.gpu),
    pytest.param((128, 8192, 4), marks=pytest.mark.gpu),
]


def output_by_output(
    x: Tensor, window: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, list[Tensor]]:
    """One sequence [T, C] from a window [C, W-1]: outputs, and the window after every token."""
    taps, y, windows = weight.shape[1], torch.zeros_like(x), []
    inputs = [*window.T, *x]
    for t in range(len(x)):
        seen = inputs[t : t + taps]
        for c in range(x.shape[1]):
            total = sum(float(weight[c, w] * seen[w][c]) for w in range(taps))
            total += float(bias[c]) if bias is not None else 0.0
            y[t, c] = total / (1 + torch.tensor(-total, dtype=torch.float64).exp())
        windows.append(torch.stack(seen[1:], 1))
    return y, windows


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("biased", [True, False])
def test_kernel_equals_its_reference(
    shape: tuple[int, int, int], dtype: torch.dtype, biased: bool, device: torch.device
) -> None:
    rows, channels, taps = shape
    kind: dict[str, Any] = {"dtype": dtype, "device": device}
    x, weight, bias = conv_inputs((rows,), channels, taps, biased=biased, **kind)
    state = memory(rows + 4, channels, taps - 1, pads=0, **kind)
    slots = shuffled(rows, len(state), device)
    before, expected_state = state.clone(), state.clone()
    expected = reference.conv_update(x, expected_state, weight, bias, slots)

    y = update.conv_update(x, state, weight, bias, slots)

    assert_close(y, expected)
    assert torch.equal(state[1:], expected_state[1:])
    assert_untouched(before, state, slots[:-1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("biased", [True, False])
def test_reference_equals_the_sum(dtype: torch.dtype, biased: bool) -> None:
    x, weight = torch.randn(3, 5).to(dtype), torch.randn(5, 4).to(dtype)
    bias = torch.randn(5).to(dtype) if biased else None
    state, slots = memory(8, 5, 3, pads=0, dtype=dtype), shuffled(3, 8)
    before = state.clone()

    y = conv_update(x, state, weight, bias, slots)

    wide = None if bias is None else bias.double()
    for row, slot in enumerate(slots[:-1].tolist()):
        expected, windows = output_by_output(
            x[row : row + 1].double(), before[slot].double(), weight.double(), wide
        )
        assert_close(y[row], expected[0].to(dtype))
        assert torch.equal(state[slot], windows[0].to(dtype))
    assert y[-1].eq(0).all()
    assert_untouched(before, state, slots[:-1])
