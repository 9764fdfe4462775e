"""A small random model whose recurrent state shows, and engines that serve it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from asking import Build, engine_on

from slotscope.engine.models.testing import make_checkpoint

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random Qwen3-Next."""
    return make_checkpoint(tmp_path_factory.mktemp("model") / "small", draft=True)


@pytest.fixture(scope="session")
def build(checkpoint: Path) -> Build:
    """`build(**knobs)` makes an engine in float64: no near tie can excuse a difference there."""
    return partial(engine_on, checkpoint)
