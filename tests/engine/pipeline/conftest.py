"""A model of eight small layers, so that each of four stages has one of each kind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from asking import Build, engine_on

from slotscope.engine.models.testing import make_checkpoint


@pytest.fixture(scope="session")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random Qwen3-Next, dense and small."""
    path = tmp_path_factory.mktemp("model") / "layered"
    return make_checkpoint(
        path, num_hidden_layers=8, num_experts=0, hidden_size=48, intermediate_size=64
    )


@pytest.fixture(scope="session")
def staged(layered: Path) -> Build:
    """`staged(pp_size=4, **knobs)` makes an engine of so many stages in float64."""
    return partial(
        engine_on,
        layered,
        disable_overlap_schedule=True,
        max_running_requests=10,
        max_mamba_cache_size=48,
    )
