"""The reproduction in small: each aliased donation is found by slot and request, and no other."""

from __future__ import annotations

from pathlib import Path

import donation
import pytest
import torch
from asking import random_prompt

from slotscope.engine.models.testing import make_checkpoint

torch.set_num_threads(1)

PROMPTS = [random_prompt(donation.PROMPT_TOKENS, seed=at) for at in range(8)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose recurrent state shows."""
    return make_checkpoint(tmp_path_factory.mktemp("model") / "small")


def outcome(model: Path, *, patched: bool) -> donation.Outcome:
    return donation.outcome(patched, model, PROMPTS, lambda: None)


def test_without_the_patch_findings_are_the_aliased_donations(model: Path) -> None:
    told = outcome(model, patched=False)
    assert told.aliased
    assert told.found == told.aliased
    assert told.foreign == told.suppressed == 0
    assert told.differing > 0


def test_with_the_patch_nothing_is_found_and_the_checkpoint_comes_later(model: Path) -> None:
    told = outcome(model, patched=True)
    assert told.failing
    assert told.suppressed == told.republished > 0
    assert not told.aliased
    assert not told.found
    assert told.foreign == told.differing == 0
