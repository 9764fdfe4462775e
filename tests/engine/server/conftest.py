from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slotscope.engine.tokenizer import Tokenizer
from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import Client, serving
from tests.engine.server.vocabulary import write_folder


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder: Path = tmp_path_factory.mktemp("model")
    loaded = Tokenizer.load(write_folder(folder))
    assert loaded is not None
    return loaded


@pytest.fixture
def parrot() -> Parrot:
    return Parrot()


@pytest.fixture
def client(parrot: Parrot, tokenizer: Tokenizer) -> Iterator[Client]:
    with serving(parrot, tokenizer) as client:
        yield client
