from __future__ import annotations

import pytest
import torch
from recurrent_kernels import check_chunk
from torch import Tensor
from transformers.models.kimi_linear import modeling_kimi_linear

from slotscope.kernels.checks import KernelError
from slotscope.kernels.kda import kda_chunk, kda_step
from slotscope.kernels.testing import assert_close, kda_inputs, memory


@pytest.mark.parametrize(
    ("tokens", "chunk"), [(1, 64), (5, 64), (8, 8), (9, 8), (23, 8), (3, 1), (150, 64)]
)
def test_equals_one_step_after_the_other(tokens: int, chunk: int) -> None:
    check_chunk(kda_chunk, kda_step, kda_inputs, tokens, chunk)


def test_strong_decay_neither_overflows_nor_leaks_the_past() -> None:
    """Every second channel forgets all at once; the others keep nearly everything."""
    inputs = kda_inputs((130,), 1, 2, 8, 6, dtype=torch.float32)
    g = torch.tensor([-50.0, -1e-3] * 4).expand(130, 2, 8).contiguous()
    wide = inputs._replace(g=g).each(Tensor.double)
    initial = memory(2, 8, 6, pads=slice(0), dtype=torch.float32)
    state, slot = torch.stack((initial, initial)).double(), torch.tensor([1])
    expected = torch.cat([kda_step(*wide.at(slice(t, t + 1)), state, slot) for t in range(130)])

    o, states = kda_chunk(*inputs._replace(g=g), initial)

    torch.testing.assert_close(o.double(), expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(states[-1].double(), state[1], rtol=0, atol=1e-4)


def test_bfloat16_is_summed_in_float32() -> None:
    inputs = kda_inputs((70,), 1, 2, 8, 8, dtype=torch.bfloat16)
    initial = memory(2, 8, 8, pads=slice(0), dtype=torch.bfloat16)
    wide, states_wide = kda_chunk(*inputs.each(Tensor.float), initial.float())

    o, states = kda_chunk(*inputs, initial)

    assert torch.equal(o, wide.bfloat16())
    assert torch.equal(states, states_wide.bfloat16())


def test_a_chunk_that_cannot_be_halved_is_refused() -> None:
    inputs = kda_inputs((9,), 1, 1, 4, 4, dtype=torch.float32)
    with pytest.raises(KernelError, match="48 tokens"):
        kda_chunk(*inputs, memory(1, 4, 4, pads=slice(0), dtype=torch.float32), 48)


@pytest.mark.parametrize("name", ["chunk_kimi_delta_attention", "recurrent_kimi_delta_attention"])
def test_equals_transformers(name: str) -> None:
    theirs = getattr(modeling_kimi_linear, name)
    q, k, v, g, beta = kda_inputs((100,), 4, 4, 16, 12, dtype=torch.float32)
    initial = memory(4, 16, 12, pads=slice(0), dtype=torch.float32)
    batch = (x.unsqueeze(0) for x in (q * 16**0.5, k, v))  # it scales q itself
    expected, final = theirs(
        *batch, g=g[None], beta=beta[None], initial_state=initial[None], output_final_state=True
    )

    o, states = kda_chunk(q, k, v, g, beta, initial)

    assert_close(o, expected[0])
    assert_close(states[-1], final[0])
