"""Kernels run on the GPU where there is one, else in Triton's interpreter, on small shapes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from slotscope.kernels import testing


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _skipped_outputs_show() -> Iterator[None]:
    with testing.poisoned_empty():
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
