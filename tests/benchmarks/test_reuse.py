"""Reuse of the engine is what an LRU cache would give, to the checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest
import reuse
import torch

from slotscope.engine.models.testing import make_checkpoint

torch.set_num_threads(1)


CASES = (reuse.CASES[0], *reuse.CASES[3:])
SEATS = 3


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[reuse.Outcome]:
    """Six conversations, three at a time, with room for all checkpoints or with 12 slots."""
    model = make_checkpoint(tmp_path_factory.mktemp("model") / "small", vocab_size=264)
    load = replace(reuse.WORKLOAD, conversations=6, seats=SEATS, prompt=568, model=model)
    return [
        reuse.outcome(replace(case, pool=12 if case.pool == 96 else case.pool), load)
        for case in CASES
    ]


@pytest.mark.parametrize("at", range(len(CASES)), ids=[f"{c.pool}-{c.name}" for c in CASES])
def test_reuse_is_that_of_the_lru_model(at: int, outcomes: list[reuse.Outcome]) -> None:
    found = outcomes[at]
    assert found.reuse == found.model
    assert found.pinned == SEATS * CASES[at].rules.pinned


def test_a_spare_that_evicts_costs_what_extra_buffer_pins(
    outcomes: list[reuse.Outcome],
) -> None:
    roomy, lazy, evicting, extra, _ = outcomes
    assert roomy.reuse > lazy.reuse > 0.7
    assert evicting.reuse == extra.reuse == 0
