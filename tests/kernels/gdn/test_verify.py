from __future__ import annotations

import pytest
import torch
from recurrent_kernels import check_tree

from slotscope.kernels.gdn import gdn_step, gdn_verify, reference, verify
from slotscope.kernels.testing import assert_close, assert_untouched, gdn_inputs, memory, shuffled

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
SHAPES = [
    (2, 1, 1, 1, 4, 4),
    (3, 3, 2, 4, 6, 10),
    pytest.param((17, 5, 3, 6, 60, 100), marks=pytest.mark.gpu),
    pytest.param((64, 4, 16, 32, 128, 128), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: tuple[int, int, int, int, int, int], dtype: torch.dtype, device: torch.device
) -> None:
    rows, D, HK, HV, K, V = shape
    kind = {"dtype": dtype, "device": device}
    inputs = gdn_inputs((rows, D), HK, HV, K, V, **kind)
    state = memory(rows + 3, HV, K, V, pads=0, **kind)
    steps = memory(rows + 2, D + 1, HV, K, V, pads=slice(None), **kind)  # longer than the chain
    slots, scratch = shuffled(rows, len(state), device), shuffled(rows, len(steps), device)
    before, expected_steps = state.clone(), steps.clone()
    expected = reference.gdn_verify(*inputs, state, slots, expected_steps, scratch)

    o = verify.gdn_verify(*inputs, state, slots, steps, scratch)

    assert_close(o, expected)
    assert_close(steps, expected_steps)
    assert_untouched(before, state, slots[:0])
    assert_untouched(torch.full_like(steps, torch.nan), steps, scratch[:-1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_reference_equals_one_step_after_the_other(dtype: torch.dtype) -> None:
    rows, D, HK, HV, K, V = 4, 3, 2, 4, 5, 6
    inputs = gdn_inputs((rows, D), HK, HV, K, V, dtype=dtype)
    state = memory(9, HV, K, V, pads=0, dtype=dtype)
    steps = memory(6, D, HV, K, V, pads=slice(None), dtype=dtype)
    slots, scratch = shuffled(rows, 9), shuffled(rows, 6)

    o = gdn_verify(*inputs, state, slots, steps, scratch)

    for d in range(D):
        expected = gdn_step(*inputs.at(slice(None), d), state, slots)
        assert_close(o[:, d], expected)
        assert_close(steps[scratch[:-1], d], state[slots[:-1]])
    assert_untouched(torch.full_like(steps, torch.nan), steps, scratch[:-1])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_token_of_a_tree_starts_from_what_its_parent_stored(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    for operator in (verify.gdn_verify, reference.gdn_verify):
        check_tree(operator, reference.gdn_step, gdn_inputs, shape, dtype, device)


def test_bfloat16_chain_rounds_what_it_stores_and_not_what_it_carries() -> None:
    inputs = gdn_inputs((1, 3), 1, 1, 4, 4, dtype=torch.bfloat16)
    state = memory(2, 1, 4, 4, pads=0, dtype=torch.bfloat16)
    steps = memory(1, 3, 1, 4, 4, pads=slice(None), dtype=torch.bfloat16)
    wide_steps = steps.float()
    row, slot = torch.tensor([0]), torch.tensor([1])

    gdn_verify(*inputs, state, slot, steps, row)
    gdn_verify(*inputs, state.float(), slot, wide_steps, row)

    assert torch.equal(steps, wide_steps.bfloat16())
