from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers.models.qwen3_next import modeling_qwen3_next

from slotscope.kernels.gdn import gdn_chunk, gdn_step
from slotscope.kernels.testing import Inputs, assert_close, gdn_inputs, memory


def stepped(inputs: Inputs, initial: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and states of every token, by `gdn_step`."""
    state, slot = torch.stack((initial, initial)), torch.tensor([1])
    o, states = [], []
    for t in range(len(inputs.q)):
        o.append(gdn_step(*inputs.at(slice(t, t + 1)), state, slot))
        states.append(state[1].clone())
    return torch.cat(o), torch.stack(states)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(
    ("tokens", "chunk"), [(1, 64), (5, 64), (8, 8), (9, 8), (23, 8), (150, 64)]
)
def test_equals_one_step_after_the_other(tokens: int, chunk: int, dtype: torch.dtype) -> None:
    inputs = gdn_inputs((tokens,), 2, 4, 6, 10, dtype=dtype)
    initial = memory(4, 6, 10, pads=slice(0), dtype=dtype)
    expected, states_expected = stepped(inputs, initial)

    o, states = gdn_chunk(*inputs, initial, chunk)

    ends = [min(end, tokens) - 1 for end in range(chunk, tokens + chunk, chunk)]
    bound = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(o, expected, rtol=0, atol=bound)
    torch.testing.assert_close(states, states_expected[ends], rtol=0, atol=bound)


def test_bfloat16_is_summed_in_float32() -> None:
    inputs = gdn_inputs((70,), 1, 2, 8, 8, dtype=torch.bfloat16)
    initial = memory(2, 8, 8, pads=slice(0), dtype=torch.bfloat16)
    wide, states_wide = gdn_chunk(*inputs.each(Tensor.float), initial.float())

    o, states = gdn_chunk(*inputs, initial)

    assert torch.equal(o, wide.bfloat16())
    assert torch.equal(states, states_wide.bfloat16())


def test_strong_decay_neither_overflows_nor_leaks_the_past() -> None:
    q, k, v, g, beta = gdn_inputs((40,), 1, 1, 4, 4, dtype=torch.float32)
    initial = memory(1, 4, 4, pads=slice(0), dtype=torch.float32)
    g = torch.full_like(g, -50.0)  # exp(50 * 40) is no float64

    o, states = gdn_chunk(q, k, v, g, beta, initial, 16)

    alone = (q * k).sum(-1, keepdim=True) * beta.unsqueeze(-1) * v
    assert_close(o, alone)
    assert states.isfinite().all()


def test_initial_state_is_not_written() -> None:
    inputs = gdn_inputs((9,), 1, 2, 4, 4, dtype=torch.float64)
    initial = memory(2, 4, 4, pads=slice(0), dtype=torch.float64)
    before = initial.clone()
    gdn_chunk(*inputs, initial, 4)
    assert torch.equal(initial, before)


@pytest.mark.parametrize(
    "name", ["torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"]
)
def test_equals_transformers(name: str) -> None:
    theirs = getattr(modeling_qwen3_next, name)
    q, k, v, g, beta = gdn_inputs((100,), 2, 4, 16, 12, dtype=torch.float32)
    initial = memory(4, 16, 12, pads=slice(0), dtype=torch.float32)
    shared = (x.repeat_interleave(2, 1) for x in (q * 16**0.5, k))  # it scales q itself
    batch = (x.unsqueeze(0) for x in (*shared, v, g, beta))
    expected, final = theirs(*batch, initial_state=initial[None], output_final_state=True)

    o, states = gdn_chunk(q, k, v, g, beta, initial)

    assert_close(o, expected[0])
    assert_close(states[-1], final[0])
