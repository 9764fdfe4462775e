"""A small random model whose recurrent state shows, and engines that serve it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.models.testing import make_checkpoint

torch.set_num_threads(1)

Build = Callable[..., Engine]


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random Qwen3-Next."""
    return make_checkpoint(tmp_path_factory.mktemp("model") / "small")


@pytest.fixture(scope="session")
def build(checkpoint: Path) -> Build:
    """`build(**knobs)` makes an engine in float64: no near tie can excuse a difference there."""

    def make(**knobs: Any) -> Engine:
        base: dict[str, Any] = {
            "model_path": checkpoint,
            "dtype": "float64",
            "context_length": 1024,
            "max_running_requests": 4,
            "max_total_tokens": 8192,
            "max_mamba_cache_size": 40,
            "mamba_track_interval": 64,
        }
        return Engine(EngineConfig(**base | knobs))

    return make
