from __future__ import annotations

import pytest
import torch
from recurrent_kernels import DTYPES, check_formula, check_step
from torch import Tensor

from slotscope.kernels.kda import kda_step, reference, step
from slotscope.kernels.testing import Inputs, kda_inputs

SHAPES = [
    (3, 1, 1, 4, 4),
    (4, 2, 4, 6, 10),
    pytest.param((33, 3, 6, 60, 100), marks=pytest.mark.gpu),
    pytest.param((128, 8, 32, 128, 128), marks=pytest.mark.gpu),
]


def token(row: Inputs, head: int, state: Tensor) -> tuple[Tensor, Tensor]:
    """S = (I - beta k k^T) diag(exp(g)) S + beta k v^T, as in the paper."""
    group = head // (len(row.v) // len(row.k))
    key, beta = row.k[group], row.beta[head]
    erase = torch.eye(len(key), dtype=key.dtype) - beta * torch.outer(key, key)
    state = erase @ row.g[head].exp().diag() @ state + beta * torch.outer(key, row.v[head])
    return row.q[group] @ state, state


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    check_step(step.kda_step, reference.kda_step, kda_inputs, shape, dtype, device)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reference_equals_the_recurrence(dtype: torch.dtype) -> None:
    check_formula(kda_step, kda_inputs, token, dtype)
