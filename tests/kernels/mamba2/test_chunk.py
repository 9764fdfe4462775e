from __future__ import annotations

import pytest
import torch
from recurrent_kernels import check_chunk
from torch import Tensor
from transformers.models.granitemoehybrid import modeling_granitemoehybrid

from slotscope.kernels.mamba2 import mamba2_chunk, mamba2_step
from slotscope.kernels.testing import assert_close, mamba2_inputs, memory


@pytest.mark.parametrize(
    ("tokens", "chunk"), [(1, 64), (5, 64), (8, 8), (9, 8), (23, 8), (150, 64)]
)
def test_equals_one_step_after_the_other(tokens: int, chunk: int) -> None:
    check_chunk(mamba2_chunk, mamba2_step, mamba2_inputs, tokens, chunk)


def test_strong_decay_neither_overflows_nor_leaks_the_past() -> None:
    c, b, x, g, dt = mamba2_inputs((40,), 1, 1, 4, 4, dtype=torch.float32)
    initial = memory(1, 4, 4, pads=slice(0), dtype=torch.float32)

    o, states = mamba2_chunk(c, b, x, torch.full_like(g, -50.0), dt, initial, 16)

    assert_close(o, (c * b).sum(-1, keepdim=True) * dt.unsqueeze(-1) * x)
    assert states.isfinite().all()


def test_bfloat16_is_summed_in_float32() -> None:
    inputs = mamba2_inputs((70,), 1, 2, 8, 8, dtype=torch.bfloat16)
    initial = memory(2, 8, 8, pads=slice(0), dtype=torch.bfloat16)
    wide, states_wide = mamba2_chunk(*inputs.each(Tensor.float), initial.float())

    o, states = mamba2_chunk(*inputs, initial)

    assert torch.equal(o, wide.bfloat16())
    assert torch.equal(states, states_wide.bfloat16())


def test_equals_transformers() -> None:
    """Its states are [heads, head size, state size], ours the other way round."""
    c, b, x, g, dt = mamba2_inputs((100,), 2, 4, 16, 12, dtype=torch.float32)
    rate = -torch.rand(4)
    initial = memory(4, 16, 12, pads=slice(0), dtype=torch.float32)
    expected, final = modeling_granitemoehybrid.mamba2_chunk_scan(
        x[None],
        dt[None],
        rate,
        b[None],
        c[None],
        chunk_size=32,
        initial_states=initial.mT[None],
        return_final_states=True,
    )

    o, states = mamba2_chunk(c, b, x, dt * rate, dt, initial)

    torch.testing.assert_close(o, expected[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(states[-1], final[0].mT, rtol=0, atol=1e-4)
