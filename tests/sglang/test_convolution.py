"""The stand-in's convolution against torch's own over the whole history."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from sgl_kernel.mamba import causal_conv1d_fn_cpu, causal_conv1d_update_cpu
from torch import Tensor

CHANNELS, W = 5, 4


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


WEIGHT, BIAS = draw(CHANNELS, W), draw(CHANNELS)


def expected(history: Tensor, activation: str | None = "silu") -> Tensor:
    """history [channels, W - 1 + n] -> [channels, n]."""
    out = F.conv1d(history[None], WEIGHT[:, None], BIAS, groups=CHANNELS)[0]
    return F.silu(out) if activation else out


@pytest.mark.parametrize("activation", ["silu", None])
def test_prefill_starts_from_the_window_or_from_zeros(activation: str | None) -> None:
    lengths, slots = (1, 9, 2), (3, 0, 2)
    x, windows = draw(CHANNELS, sum(lengths)), draw(5, CHANNELS, W - 1)
    true = windows.clone()
    out = causal_conv1d_fn_cpu(
        x, WEIGHT, BIAS, activation, windows, torch.tensor([True, False, True]),
        torch.tensor(slots), torch.tensor([0, 1, 10, 12]),
    )  # fmt: skip
    true[0] = 0
    at = 0
    for length, slot in zip(lengths, slots, strict=True):
        history = torch.cat((true[slot], x[:, at : at + length]), -1)
        torch.testing.assert_close(out[:, at : at + length], expected(history, activation))
        true[slot] = history[:, -(W - 1) :]
        at += length
    assert torch.equal(windows, true)


def test_a_decode_is_a_prefill_of_one_token() -> None:
    x, windows, slots = draw(2, CHANNELS), draw(4, CHANNELS, W - 1), torch.tensor([3, 1])
    single = windows.clone()
    out = causal_conv1d_update_cpu(x, windows, WEIGHT, BIAS, "silu", slots)
    prefilled = causal_conv1d_fn_cpu(
        x.T.contiguous(), WEIGHT, BIAS, "silu", single, torch.tensor([True, True]), slots,
        torch.tensor([0, 1, 2]),
    )  # fmt: skip
    torch.testing.assert_close(out, prefilled.T)
    assert torch.equal(windows, single)


def test_a_verify_stores_the_window_after_every_token() -> None:
    steps = 6
    x, windows = draw(1, CHANNELS, steps), draw(2, CHANNELS, W - 1)
    scratch = torch.zeros(3, steps, CHANNELS, W - 1)
    history = torch.cat((windows[1], x[0]), -1)
    out = causal_conv1d_update_cpu(
        x, windows, WEIGHT, BIAS, "silu", torch.tensor([1]), scratch, torch.tensor([2])
    )
    torch.testing.assert_close(out[0], expected(history))
    for step in range(steps):
        assert torch.equal(scratch[2, step], history[:, step + 1 : step + W])
    assert torch.equal(windows[1], scratch[2, -1])
    assert not scratch[:2].any()


def test_a_tree_token_sees_its_ancestors_alone() -> None:
    # 0 -> (1 -> 3, 2): children 1 and 2 of the root, 3 under 1.
    child, sibling = torch.tensor([[1, 3, -1, -1]]), torch.tensor([[-1, 2, -1, -1]])
    parents = torch.full((1, 4), 99)
    x, windows = draw(1, CHANNELS, 4), draw(1, CHANNELS, W - 1)
    before, scratch = windows[0].clone(), torch.zeros(1, 4, CHANNELS, W - 1)
    out = causal_conv1d_update_cpu(
        x, windows, WEIGHT, BIAS, "silu", torch.tensor([0]), scratch, torch.tensor([0]),
        child, sibling, parents,
    )  # fmt: skip
    assert parents.tolist() == [[0, 0, 0, 1]]
    for path in ([0], [0, 1], [0, 2], [0, 1, 3]):
        history = torch.cat((before, x[0][:, path]), -1)
        torch.testing.assert_close(out[0, :, path[-1]], expected(history)[:, -1])
        assert torch.equal(scratch[0, path[-1]], history[:, -(W - 1) :])


def test_a_pad_touches_no_window() -> None:
    windows = draw(2, CHANNELS, W - 1)
    before = windows.clone()
    pads = torch.tensor([-1, -1])
    out = causal_conv1d_update_cpu(draw(2, CHANNELS), windows, WEIGHT, BIAS, "silu", pads)
    assert torch.equal(windows, before)
    assert not out.any()
