from __future__ import annotations

from typing import Any

import pytest
import torch

from slotscope.kernels.conv import conv_prefill, conv_update, prefill, reference
from slotscope.kernels.testing import assert_close, conv_inputs

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
SHAPES = [
    (1, 5, 4),
    (35, 70, 4),
    (2, 3, 2),
    pytest.param((1000, 1001, 3), marks=pytest.mark.gpu),
    pytest.param((4096, 8192, 4), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("biased", [True, False])
def test_kernel_equals_its_reference(
    shape: tuple[int, int, int], dtype: torch.dtype, biased: bool, device: torch.device
) -> None:
    tokens, channels, taps = shape
    kind: dict[str, Any] = {"dtype": dtype, "device": device}
    x, weight, bias = conv_inputs((tokens,), channels, taps, biased=biased, **kind)
    initial = torch.randn(channels, taps - 1).to(**kind)

    y = prefill.conv_prefill(x, initial, weight, bias)

    assert_close(y, reference.conv_prefill(x, initial, weight, bias))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("tokens", [1, 2, 3, 7])
def test_equals_one_update_after_the_other(tokens: int, dtype: torch.dtype) -> None:
    x, weight, bias = (torch.randn(size).to(dtype) for size in ((tokens, 5), (5, 4), (5,)))
    state, slot = torch.randn(2, 5, 3).to(dtype), torch.tensor([1])

    y, windows = conv_prefill(x, state[1], weight, bias)
    assert torch.equal(windows.after(0), state[1])

    for t in range(tokens):
        assert_close(y[t], conv_update(x[t : t + 1], state, weight, bias, slot)[0])
        assert torch.equal(windows.after(t + 1), state[1])


def test_windows_survive_a_write_to_the_state_they_began_in() -> None:
    state = torch.randn(2, 5, 3)
    first = state[1].clone()
    _, windows = conv_prefill(torch.randn(2, 5), state[1], torch.randn(5, 4), None)
    state[1] = windows.after(2)
    assert torch.equal(windows.after(0), first)


@pytest.mark.parametrize("tokens", [-1, 3])
def test_a_window_outside_the_sequence_is_refused(tokens: int) -> None:
    _, windows = conv_prefill(torch.randn(2, 5), torch.randn(5, 3), torch.randn(5, 4), None)
    with pytest.raises(IndexError, match="the sequence has 2; ask for 0 to 2"):
        windows.after(tokens)
