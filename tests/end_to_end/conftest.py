"""Models to serve: a random one for engines in this process, the bundled one for commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from asking import Build, engine_on

from slotscope.engine.models.testing import make_checkpoint
from tests.engine.server.vocabulary import write_folder

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random Qwen3-Next whose recurrent state shows."""
    return make_checkpoint(tmp_path_factory.mktemp("model") / "small", draft=True)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a byte-level tokenizer, as the server wants it."""
    path = tmp_path_factory.mktemp("model") / "served"
    return write_folder(make_checkpoint(path, vocab_size=264, eos_token_id=256))


@pytest.fixture(scope="session")
def build(checkpoint: Path) -> Build:
    """`build(**knobs)` makes an engine in float64: no near tie can excuse a difference there."""
    return partial(engine_on, checkpoint)
