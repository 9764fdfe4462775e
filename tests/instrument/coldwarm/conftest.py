"""Real servers: the engine that is right, the one with its bug, and what stands between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from asking import engine_on

from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.serving import Client, serving
from tests.engine.server.vocabulary import write_folder

torch.set_num_threads(1)

Serve = Callable[..., AbstractContextManager[str]]
"""The `serve` fixture: `with serve(**knobs) as url`."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3-Next whose recurrent state shows, with a tokenizer of bytes."""
    path = tmp_path_factory.mktemp("model") / "served"
    return write_folder(make_checkpoint(path, vocab_size=264, eos_token_id=256))


@pytest.fixture(scope="session")
def serve(folder: Path) -> Serve:
    """Serve an engine in this process; by default lazy, NEXTN, every patch on."""

    @contextmanager
    def started(**knobs: Any) -> Iterator[str]:
        engine = engine_on(folder, **{"speculative_algorithm": "NEXTN"} | knobs)
        with serving(engine, Tokenizer.load(folder)) as client:
            yield address(client)

    return started


def address(client: Client) -> str:
    """Of the server that it talks to."""
    return f"http://{client.address[0]}:{client.address[1]}"
