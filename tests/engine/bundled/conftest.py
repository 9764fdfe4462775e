"""The bundled folder, as the training model and as transformers load it; text that it writes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import Qwen3NextForCausalLM

from slotscope.engine.bundled import PATH
from slotscope.engine.bundled.corpus import HELD_OUT
from slotscope.engine.bundled.make import data, folder
from slotscope.engine.bundled.make.model import Model

PROMPT = 128
WRITTEN = 66


@pytest.fixture(scope="session")
def model() -> Model:
    """The training model with the stored weights."""
    return folder.load(PATH)


@pytest.fixture(scope="session")
def theirs() -> Any:
    """transformers' model of the same folder, float32."""
    return Qwen3NextForCausalLM.from_pretrained(PATH, dtype=torch.float32)


@pytest.fixture(scope="session")
def held() -> data.Stream:
    """Texts that training has not seen."""
    return data.write(HELD_OUT, 200)


@pytest.fixture(scope="session")
def prompts(held: data.Stream) -> Tensor:
    """[8, 128] int64, the beginnings of eight held-out texts."""
    return held.rows(8, PROMPT, torch.Generator().manual_seed(5))


@pytest.fixture(scope="session")
def texts(theirs: Any, prompts: Tensor) -> Tensor:
    """[8, 194] int64: the prompts, and what transformers writes after them."""
    with torch.inference_mode():
        result = theirs(prompts, use_cache=True)
        return torch.cat([prompts, go_on(theirs, result, WRITTEN)], dim=1)


def go_on(theirs: Any, result: Any, count: int) -> Tensor:
    """[B, count] greedy tokens after a forward that left `result.cache`, which moves on."""
    written = []
    for _ in range(count):
        token = result.logits[:, -1:].argmax(-1)
        written.append(token)
        result = theirs(token, cache=result.cache, use_cache=True)
    return torch.cat(written, dim=1)
