from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.kernels.gdn import gdn_step, reference, step
from slotscope.kernels.testing import assert_close, assert_untouched, gdn_inputs, memory, shuffled

DTYPES = (torch.float64, torch.float32, torch.bfloat16)
SHAPES = [
    (3, 1, 1, 4, 4),
    (4, 2, 4, 6, 10),
    pytest.param((33, 3, 6, 60, 100), marks=pytest.mark.gpu),
    pytest.param((128, 16, 32, 128, 128), marks=pytest.mark.gpu),
]


def token_by_token(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The recurrence as written in the paper, for one row: outputs and states of every token."""
    tokens, heads, _ = v.shape
    group = heads // q.shape[1]
    o, states = torch.zeros_like(v), state.new_zeros(tokens, *state.shape)
    for h in range(heads):
        s = state[h]
        for t in range(tokens):
            key, query = k[t, h // group], q[t, h // group]
            erase = torch.eye(len(key), dtype=s.dtype) - beta[t, h] * torch.outer(key, key)
            s = g[t, h].exp() * erase @ s + beta[t, h] * torch.outer(key, v[t, h])
            o[t, h], states[t, h] = query @ s, s
    return o, states


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: tuple[int, int, int, int, int], dtype: torch.dtype, device: torch.device
) -> None:
    rows, HK, HV, K, V = shape
    inputs = gdn_inputs((rows,), HK, HV, K, V, dtype=dtype, device=device)
    state = memory(rows + 4, HV, K, V, pads=0, dtype=dtype, device=device)
    slots = shuffled(rows, len(state), device)
    expected_state = state.clone()
    expected = reference.gdn_step(*inputs, expected_state, slots)
    before = state.clone()

    o = step.gdn_step(*inputs, state, slots)

    assert_close(o, expected)
    assert_close(state, expected_state)
    assert_untouched(before, state, slots[:-1])


def test_kernel_takes_strided_inputs_and_a_layer_of_all_states(device: torch.device) -> None:
    rows, heads, size = 3, 2, 4
    states = memory(2, 8, heads, size, size, pads=0, dtype=torch.float32, device=device)
    inputs = gdn_inputs((rows,), heads, heads, size, size, dtype=torch.float32, device=device)
    inputs = inputs.each(lambda x: torch.cat((x, x), -1)[..., : x.shape[-1]])
    slots = shuffled(rows, 8, device)
    expected = states.clone()
    reference.gdn_step(*inputs, expected[1], slots)

    step.gdn_step(*inputs, states[1], slots)

    assert_close(states, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reference_equals_the_recurrence(dtype: torch.dtype) -> None:
    rows, HK, HV, K, V = 4, 2, 6, 5, 7
    inputs = gdn_inputs((rows,), HK, HV, K, V, dtype=dtype)
    state = memory(9, HV, K, V, pads=0, dtype=dtype)
    slots = shuffled(rows, 9)
    before = state.clone()

    o = gdn_step(*inputs, state, slots)

    for row, slot in enumerate(slots[:-1].tolist()):
        token = inputs.at(slice(row, row + 1)).each(Tensor.double)
        expected, states = token_by_token(*token, before[slot].double())
        assert_close(o[row], expected[0].to(dtype))
        assert_close(state[slot], states[0].to(dtype))
    assert o[-1].eq(0).all()
    assert_untouched(before, state, slots[:-1])


def test_a_batch_of_padding_alone_does_nothing(device: torch.device) -> None:
    inputs = gdn_inputs((2,), 1, 2, 4, 4, dtype=torch.float32, device=device)
    state = memory(3, 2, 4, 4, pads=0, dtype=torch.float32, device=device)
    before, slots = state.clone(), torch.zeros(2, dtype=torch.int64, device=device)

    for compute in (reference.gdn_step, step.gdn_step):
        assert compute(*inputs, state, slots).eq(0).all()
        assert_untouched(before, state, slots[:0])
