from __future__ import annotations

import pytest
import torch
from recurrent_kernels import DTYPES, check_tree, check_verify, check_verify_by_steps

from slotscope.kernels.kda import kda_step, kda_verify, reference, verify
from slotscope.kernels.testing import kda_inputs

SHAPES = [
    (2, 1, 1, 1, 4, 4),
    (3, 3, 2, 4, 6, 10),
    pytest.param((17, 5, 3, 6, 60, 100), marks=pytest.mark.gpu),
    pytest.param((64, 4, 8, 32, 128, 128), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kernel_equals_its_reference(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    check_verify(verify.kda_verify, reference.kda_verify, kda_inputs, shape, dtype, device)


def test_reference_equals_one_step_after_the_other() -> None:
    check_verify_by_steps(kda_verify, kda_step, kda_inputs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_token_of_a_tree_starts_from_what_its_parent_stored(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    for operator in (verify.kda_verify, reference.kda_verify):
        check_tree(operator, reference.kda_step, kda_inputs, shape, dtype, device)
