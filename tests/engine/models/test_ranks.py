"""Keys and values on several ranks give the logits of one, on every family of models."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from slotscope.engine.models.base import Model
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import FAMILIES, SMALL, make_checkpoint

CPU = torch.device("cpu")
TOKENS = random.Random(1).choices(range(SMALL["vocab_size"]), k=150)
TREE = [[-1, 0, 0, 1, 2, 2], [-1, 0, 1, 1, 0, 4]]
close = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


@pytest.fixture(scope="module", params=FAMILIES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder: Path = make_checkpoint(tmp_path_factory.mktemp("model"), family=request.param)
    return load(folder, torch.float64, CPU)


def served(model: Model, ranks: int) -> Tensor:
    """Logits of two sequences, one of which is at first shorter than there are ranks, through all
    kinds of batches, padding included. Whatever is read before it is written is NaN."""
    driver = Driver(model, torch.float64, draft_tokens=6, ranks=ranks)
    driver.begin(1, 2)
    hidden = [
        driver.prefill({1: TOKENS[:37], 2: TOKENS[:1]}),
        driver.prefill({1: TOKENS[37:101], 2: TOKENS[1:6]}),
        *(driver.decode({1: TOKENS[n], 2: TOKENS[n + 9]}, pads=1)[:2] for n in range(101, 110)),
        driver.verify({1: TOKENS[110:116], 2: TOKENS[120:126]}, pads=1)[:2].flatten(0, 1),
    ]
    driver.rewind(1, 4)
    driver.rewind(2, 1)
    grown = {1: TOKENS[130:136], 2: TOKENS[140:146]}
    hidden.append(driver.verify(grown, pads=1, parents=TREE)[:2].flatten(0, 1))
    return model.logits(torch.cat(hidden))


@pytest.fixture(scope="module")
def alone(model: Model) -> Tensor:
    return served(model, 1)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_logits_are_those_of_one_rank(model: Model, alone: Tensor, ranks: int) -> None:
    assert alone.isfinite().all()
    close(served(model, ranks), alone)
