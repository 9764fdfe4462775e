"""Engines on a model that is small enough for many of them."""

from __future__ import annotations

from functools import partial

import pytest
from asking import Build, engine_on

from slotscope.engine.models.testing import make_checkpoint


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """`build(**knobs)` makes an engine in float64, on one attention and one recurrent layer for
    each of two stages."""
    shape = {
        "num_hidden_layers": 4,
        "hidden_size": 32,
        "intermediate_size": 32,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
        "num_experts": 2,
        "num_experts_per_tok": 1,
    }
    folder = make_checkpoint(tmp_path_factory.mktemp("model") / "tiny", draft=True, **shape)
    return partial(engine_on, folder)
