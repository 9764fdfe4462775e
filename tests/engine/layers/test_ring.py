"""The replay ring: states that lag give every output of states that don't, to the last bit."""

from __future__ import annotations

from random import Random

import pytest
import torch

from slotscope.engine.forward import Pending
from slotscope.engine.layers.gdn import GDN
from slotscope.engine.layers.kda import KDA
from slotscope.engine.layers.mamba2 import MAMBA2
from slotscope.engine.layers.recurrence import Operators
from slotscope.engine.layers.ring import buffered_step, caught_up

ROWS, HEADS, KEY, VALUE, LENGTH = 3, 2, 4, 3, 5
DECAYS = {"gdn": (HEADS,), "kda": (HEADS, KEY), "mamba2": (HEADS,)}
OPERATORS = {"gdn": GDN, "kda": KDA, "mamba2": MAMBA2}


def fed(kind: str, rows: int) -> list[torch.Tensor]:
    shapes = ((HEADS, KEY), (HEADS, KEY), (HEADS, VALUE), DECAYS[kind], (HEADS,))
    query, key, value, decay, strength = (
        torch.randn(rows, *shape, dtype=torch.float64) for shape in shapes
    )
    return [query, key, value, -decay.abs(), strength.sigmoid()]


@pytest.mark.parametrize("kind", OPERATORS)
def test_outputs_and_folded_states_are_those_of_plain_steps(kind: str) -> None:
    torch.manual_seed(1)
    draw, operators = Random(1), OPERATORS[kind]
    plain = torch.randn(ROWS + 2, HEADS, KEY, VALUE, dtype=torch.float64)
    plain[0] = 0
    lagging = plain.clone()
    ring = torch.full((ROWS + 2, LENGTH, HEADS * (2 * KEY + VALUE + 1)), float("nan")).double()
    pending = [0] * ROWS
    slots = torch.tensor([3, 1, 4, 0])
    for _ in range(40):
        folds = [count + 1 == LENGTH or draw.random() < 0.2 for count in pending]
        inputs = fed(kind, ROWS + 1)
        expected = operators.step(*inputs, plain, slots)
        told = Pending(tuple(pending), tuple(folds))
        seen = buffered_step(operators.step, inputs, lagging, ring, slots, told)
        assert torch.equal(seen, expected)
        pending = [0 if folded else n + 1 for n, folded in zip(pending, folds, strict=True)]
        for count, slot in zip(pending, slots.tolist(), strict=False):
            now = caught_up(operators.step, inputs, lagging[slot], ring[slot], count)
            assert torch.equal(now, plain[slot])
            assert count == 0 or not torch.equal(lagging[slot], plain[slot])
    assert torch.equal(lagging[2], plain[2])  # nobody's slot is not touched


def test_every_kind_is_here() -> None:
    assert all(isinstance(each, Operators) for each in OPERATORS.values())
