from __future__ import annotations

import pytest
import torch
from recurrent_kernels import DTYPES, check_formula, check_step
from torch import Tensor

from slotscope.kernels.mamba2 import mamba2_step, reference, step
from slotscope.kernels.testing import Inputs, mamba2_inputs

SHAPES = [
    (3, 1, 1, 4, 4),
    (4, 2, 4, 6, 10),
    pytest.param((33, 3, 6, 60, 100), marks=pytest.mark.gpu),
    pytest.param((128, 8, 32, 128, 128), marks=pytest.mark.gpu),
]


def token(row: Inputs, head: int, state: Tensor) -> tuple[Tensor, Tensor]:
    """S = exp(dt A) S + dt b x^T, o = c S, as in the paper; g is dt A."""
    c, b, x, g, dt = row
    group = head // (len(x) // len(b))
    state = g[head].exp() * state + dt[head] * torch.outer(b[group], x[head])
    return c[group] @ state, state


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    check_step(step.mamba2_step, reference.mamba2_step, mamba2_inputs, shape, dtype, device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reference_equals_the_recurrence(dtype: torch.dtype) -> None:
    check_formula(mamba2_step, mamba2_inputs, token, dtype)
