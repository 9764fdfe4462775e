"""Rotary positions: what turns, how far, and that only distances count."""

from __future__ import annotations

import torch

from slotscope.engine.layers.rotary import Rotary

ROTARY = Rotary.of(100.0, 4, torch.float64, torch.device("cpu"))


def rotated(x: list[float], position: int) -> torch.Tensor:
    angles = ROTARY.angles(torch.tensor([position]), torch.float64)
    return angles.rotate(torch.tensor([[x]], dtype=torch.float64))[0, 0]


def test_pairs_turn_at_their_own_speed_and_the_rest_stays() -> None:
    """Value i is paired with i + 2; the speeds are 1 and 100 ** -0.5."""
    turned = rotated([1, 0, 0, 1, 7, 8], 3)
    fast, slow = torch.tensor([3.0, 0.3], dtype=torch.float64)
    expected = torch.stack((fast.cos(), -slow.sin(), fast.sin(), slow.cos()))
    torch.testing.assert_close(turned[:4], expected, rtol=0, atol=1e-14)
    assert turned[4:].tolist() == [7, 8]


def test_products_depend_on_distance_alone() -> None:
    query, key = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, -1.0, 0.5, 1.0, 1.0]
    near = rotated(query, 7) @ rotated(key, 3)
    far = rotated(query, 1007) @ rotated(key, 1003)
    torch.testing.assert_close(near, far, rtol=0, atol=1e-12)


def test_far_positions_keep_their_precision_in_float64() -> None:
    single = Rotary.of(1e7, 4, torch.float32, torch.device("cpu"))
    assert single.frequency.dtype == torch.float32
    angles = ROTARY.angles(torch.tensor([1_000_003]), torch.float64)
    assert float(angles.cos[0, 0, 0]) == torch.tensor(1_000_003.0).double().cos().item()
