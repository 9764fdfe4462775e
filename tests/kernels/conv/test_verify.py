from __future__ import annotations

from typing import Any

import pytest
import torch

from slotscope.kernels.conv import conv_update, conv_verify, reference, verify
from slotscope.kernels.testing import (
    assert_close,
    assert_untouched,
    conv_inputs,
    memory,
    random_trees,
    shuffled,
)

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
SHAPES = [
    (2, 1, 5, 4),
    (3, 5, 130, 4),
    (3, 2, 4, 2),
    pytest.param((33, 5, 1000, 3), marks=pytest.mark.gpu),
    pytest.param((64, 4, 8192, 4), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("tree", [False, True], ids=["chain", "tree"])
def test_kernel_equals_its_reference(
    shape: tuple[int, int, int, int],
    dtype: torch.dtype,
    biased: bool,
    tree: bool,
    device: torch.device,
) -> None:
    rows, D, channels, taps = shape
    kind: dict[str, Any] = {"dtype": dtype, "device": device}
    x, weight, bias = conv_inputs((rows, D), channels, taps, biased=biased, **kind)
    state = memory(rows + 4, channels, taps - 1, pads=0, **kind)
    windows = memory(rows + 2, D + 1, channels, taps - 1, pads=slice(None), **kind)
    slots, scratch = shuffled(rows, len(state), device), shuffled(rows, len(windows), device)
    parents = random_trees(rows, D, device) if tree else None
    before, expected_windows = state.clone(), windows.clone()
    fixed = (x, state, weight, bias, slots)
    expected = reference.conv_verify(*fixed, expected_windows, scratch, parents)

    y = verify.conv_verify(*fixed, windows, scratch, parents)

    assert_close(y, expected)
    assert torch.equal(windows.nan_to_num(-9e9), expected_windows.nan_to_num(-9e9))
    assert_untouched(before, state, slots[:0])
    assert_untouched(torch.full_like(windows, torch.nan), windows, scratch[:-1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("D", [1, 2, 6])
def test_reference_equals_one_update_after_the_other(D: int, dtype: torch.dtype) -> None:
    x, weight = torch.randn(4, D, 5).to(dtype), torch.randn(5, 4).to(dtype)
    bias = torch.randn(5).to(dtype)
    state = memory(8, 5, 3, pads=0, dtype=dtype)
    windows = memory(6, D, 5, 3, pads=slice(None), dtype=dtype)
    slots, scratch = shuffled(4, 8), shuffled(4, 6)

    y = conv_verify(x, state, weight, bias, slots, windows, scratch)

    for d in range(D):
        assert_close(y[:, d], conv_update(x[:, d], state, weight, bias, slots))
        assert torch.equal(windows[scratch[:-1], d], state[slots[:-1]])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_path_of_a_tree_is_a_chain(dtype: torch.dtype) -> None:
    """Six taps: a path may be shorter or longer than the window."""
    x, weight = torch.randn(1, 8, 5).to(dtype), torch.randn(5, 6).to(dtype)
    state = memory(3, 5, 5, pads=0, dtype=dtype)
    windows = memory(3, 8, 5, 5, pads=slice(None), dtype=dtype)
    slot, scratch = torch.tensor([2]), torch.tensor([1])
    parents = torch.tensor([[-1, 0, 0, 1, 3, 4, 5, 2]])

    y = conv_verify(x, state, weight, None, slot, windows, scratch, parents)

    for path in ([0, 1, 3, 4, 5, 6], [0, 2, 7]):
        kept = memory(3, len(path), 5, 5, pads=slice(None), dtype=dtype)
        seen = conv_verify(x[:, path], state, weight, None, slot, kept, scratch)
        assert_close(y[:, path], seen)
        assert torch.equal(windows[1, path], kept[1])
