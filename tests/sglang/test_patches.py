"""What the plugin puts in place of SGLang's kernels, against loops over single elements."""

from __future__ import annotations

import pytest
import torch
from sglang_cpu.layers import add_gated_expert
from sglang_cpu.scatters import scatter
from torch import Tensor


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


@pytest.mark.parametrize("rows", [None, [2, 0, 1, 2]], ids=["in order", "by row"])
def test_a_scatter_copies_the_chosen_step_and_drops_what_has_none(rows: list[int] | None) -> None:
    pool, scratch = draw(2, 6, 3), draw(2, 4, 5, 3)
    slots, steps = [4, 1, 0, 9], [2, -1, 4, 0]  # the second has no step, the last no slot
    want = pool.clone()
    for i, (slot, step) in enumerate(zip(slots, steps, strict=True)):
        if step >= 0 and slot < 6:
            want[:, slot] = scratch[:, i if rows is None else rows[i], step]
    given = None if rows is None else torch.tensor(rows)
    scatter(pool, scratch, torch.tensor(slots), torch.tensor(steps), given)
    assert torch.equal(pool, want)


def test_a_scatter_reads_overlapping_windows() -> None:
    inputs = draw(1, 2, 3, 7)  # windows of 3 over 7 inputs, one a step
    windows = inputs.unfold(-1, 3, 1).permute(0, 1, 3, 2, 4)
    pool = torch.zeros(1, 4, 3, 3)
    scatter(pool, windows, torch.tensor([3, 1]), torch.tensor([0, 4]))
    assert torch.equal(pool[0, 3], inputs[0, 0, :, 0:3])
    assert torch.equal(pool[0, 1], inputs[0, 1, :, 4:7])
    assert not pool[0, [0, 2]].any()


def test_the_shared_expert_is_added_by_its_gate() -> None:
    hidden, gate, shared, final = draw(3, 4), draw(4), draw(3, 4, seed=1), draw(3, 4, seed=2)
    want = final + torch.sigmoid(hidden @ gate)[:, None] * shared
    add_gated_expert(hidden, gate, shared, final)
    torch.testing.assert_close(final, want)
