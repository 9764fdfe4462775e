"""Reuse of the engine is what an LRU cache would give, to the checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest
import reuse
import torch

from slotscope.engine.models.testing import make_checkpoint

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> reuse.Workload:
    """Six conversations, three at a time."""
    model = make_checkpoint(tmp_path_factory.mktemp("model") / "small", vocab_size=264)
    return replace(reuse.WORKLOAD, conversations=6, seats=3, prompt=146, model=model)


@pytest.mark.parametrize(
    "case", [reuse.CASES[0], *reuse.CASES[3:]], ids=lambda case: f"{case.pool}-{case.name}"
)
def test_reuse_is_that_of_the_lru_model(case: reuse.Case, load: reuse.Workload) -> None:
    small = replace(case, pool=12 if case.pool == 96 else case.pool)
    found = reuse.outcome(small, load)
    assert found.reuse == found.model
    assert found.pinned == load.seats * case.rules.pinned
    assert (found.reuse > 0.85) == (case.pool == 1024)
