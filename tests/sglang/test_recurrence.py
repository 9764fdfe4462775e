"""The stand-in's delta rule against the project's own reference, written apart from it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sgl_kernel import recurrence
from sgl_kernel.mamba import chunk_gated_delta_rule_cpu
from torch import Tensor

from slotscope.kernels.gdn.reference import advance

H, HV, K, V = 2, 4, 8, 6


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def pool() -> Tensor:
    """Six slots; the last one would spread if a pad read it."""
    states = draw(6, HV, V, K)
    states[5] = torch.nan
    return states


def unit(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x, dim=-1)


def expected(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor) -> Tensor:
    """Outputs [n, HV, V] of n tokens by the reference; `state` [HV, V, K] moves in place."""
    current = state.transpose(-1, -2)[None].clone()
    q, k = unit(q) * K**-0.5, unit(k)
    outputs = [
        advance(q[t : t + 1], k[t : t + 1], v[t : t + 1], g[t : t + 1], beta[t : t + 1], current)
        for t in range(len(q))
    ]
    state.copy_(current[0].transpose(-1, -2))
    return torch.cat(outputs)


def test_prefill_runs_each_sequence_from_its_slot_and_hands_out_chunk_states() -> None:
    lengths, slots = (3, 70, 130), (4, 0, 2)
    total = sum(lengths)
    q, k, v = draw(total, H, K), draw(total, H, K, seed=1), draw(total, HV, V)
    g, beta = -draw(total, HV).abs() / 9, torch.sigmoid(draw(total, HV, seed=1))
    states, true = pool(), pool()
    bounds = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()])
    output, last, chunks = chunk_gated_delta_rule_cpu(
        q[None], k[None], v[None], g[None], beta[None], states, bounds, False, True,
        initial_state_indices=torch.tensor(slots),
    )  # fmt: skip
    before = []
    for n, slot in enumerate(slots):
        for start in range(int(bounds[n]), int(bounds[n + 1]), 64):
            span = slice(start, min(start + 64, int(bounds[n + 1])))
            before.append(true[slot].clone())
            out = expected(q[span], k[span], v[span], g[span], beta[span], true[slot])
            torch.testing.assert_close(output[0, span], out, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(last[n], true[slot], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(states, true, rtol=1e-4, atol=1e-5, equal_nan=True)
    torch.testing.assert_close(chunks[0], torch.stack(before), rtol=1e-4, atol=1e-5)


def verify(states: Tensor, slots: Tensor, steps: int, **named: Any) -> Tensor:
    """`steps` tokens for each slot, the same tokens whenever `steps` is the same."""
    n = len(slots)
    q, k, v = draw(n * steps, H, K), draw(n * steps, H, K, seed=1), draw(n * steps, HV, V)
    a, b = draw(n * steps, HV, seed=2), draw(n * steps, HV, seed=3)
    return recurrence.fused_sigmoid_gating_delta_rule_update_cpu(
        draw(HV), draw(HV, seed=1), q[None], k[None], v[None], a, b, states, slots,
        torch.arange(0, n * steps + 1, steps), True, **named,
    )[0]  # fmt: skip


def test_a_verify_keeps_the_slot_and_stores_every_step() -> None:
    states, before, steps = pool(), pool(), 3
    scratch = torch.full((4, steps, HV, V, K), torch.nan)
    slots, rows = torch.tensor([3, 1]), torch.tensor([2, 0])
    named: dict[str, Any] = {
        "intermediate_states_buffer": scratch,
        "intermediate_state_indices": rows,
    }
    out = verify(states, slots, steps, disable_state_update=True, **named)
    torch.testing.assert_close(states, before, equal_nan=True)
    moved = pool()
    assert torch.equal(verify(moved, slots, steps), out)
    torch.testing.assert_close(moved[slots], scratch[rows, -1])
    assert scratch[[1, 3]].isnan().all()


def test_the_step_follows_the_reference() -> None:
    states, true, slots = pool(), pool(), torch.tensor([3, 1])
    out = verify(states, slots, 1)
    a, b = draw(2, HV, seed=2), draw(2, HV, seed=3)
    g = -draw(HV).exp() * torch.nn.functional.softplus(a + draw(HV, seed=1))
    q, k, v = draw(2, H, K), draw(2, H, K, seed=1), draw(2, HV, V)
    for n, slot in enumerate(slots.tolist()):
        one = slice(n, n + 1)
        want = expected(q[one], k[one], v[one], g[one], torch.sigmoid(b[one]), true[slot])
        torch.testing.assert_close(out[one], want, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(states, true, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_a_tree_branches_from_the_parents_state() -> None:
    steps, parents = 4, torch.tensor([[0, 0, 0, 2]])
    scratch = torch.zeros(1, steps, HV, V, K)
    slots, rows = torch.tensor([2]), torch.tensor([0])
    named: dict[str, Any] = {
        "intermediate_states_buffer": scratch,
        "intermediate_state_indices": rows,
    }
    tree = verify(pool(), slots, steps, retrieve_parent_token=parents, **named)
    chain_scratch = torch.zeros_like(scratch)
    named["intermediate_states_buffer"] = chain_scratch
    chain = verify(pool(), slots, steps, **named)
    assert torch.equal(tree[:2], chain[:2])
    assert torch.equal(scratch[0, :2], chain_scratch[0, :2])
    assert not torch.allclose(tree[2], chain[2])  # node 2 follows the root here, node 1 there
    assert not torch.allclose(scratch[0, 2], chain_scratch[0, 2])


def test_a_pad_reads_zeros_and_writes_nothing() -> None:
    states, before = pool(), pool()
    scratch = torch.zeros(2, 2, HV, V, K)
    rows = torch.tensor([-1, 1])
    named: dict[str, Any] = {
        "intermediate_states_buffer": scratch,
        "intermediate_state_indices": rows,
    }
    out = verify(states, torch.tensor([-1, 3]), 2, **named)
    assert out.isfinite().all()
    changed = [slot for slot in range(5) if not torch.equal(states[slot], before[slot])]
    assert changed == [3]
    assert not scratch[0].any()
    assert scratch[1].any()


def test_unequal_steps_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        recurrence.fused_sigmoid_gating_delta_rule_update_cpu(
            draw(HV), draw(HV), draw(1, 3, H, K), draw(1, 3, H, K), draw(1, 3, HV, V),
            draw(3, HV), draw(3, HV), pool(), torch.tensor([1, 2]), torch.tensor([0, 1, 3]), True,
        )  # fmt: skip
