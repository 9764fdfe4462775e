"""The stand-in's paged attention against a softmax written out in double precision."""

from __future__ import annotations

import pytest
import torch
from sgl_kernel.attention import decode_attention_cpu, extend_attention_cpu
from torch import Tensor

H, G, D, PAGES = 4, 2, 8, 64
SCALE = 0.3
NEWER, OLDER = (1.0, 1.0), ()


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def expected(query: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
    key, value = (x.double().repeat_interleave(H // G, 1) for x in (key, value))
    scores = torch.einsum("nhd,mhd->hnm", query.double(), key) * SCALE
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    return torch.einsum("hnm,mhd->nhd", weights, value).float()


def table() -> Tensor:
    """Three rows of 20 positions, places of the cache in no order."""
    order = torch.randperm(PAGES, generator=torch.Generator().manual_seed(0))
    return order[:60].view(3, 20).int()


@pytest.mark.parametrize("scales", [NEWER, OLDER], ids=["newer", "older"])
@pytest.mark.parametrize("mask", ["causal", "whole", "tree"])
def test_extend_sees_the_prefix_and_what_the_mask_allows(
    scales: tuple[float, ...], mask: str
) -> None:
    rows, lengths, news = [2, 0], [15, 7], [4, 3]
    keys, values, query = draw(PAGES, G, D), draw(PAGES, G, D, seed=1), draw(sum(news), H, D)
    trees = [torch.rand(n, n, generator=torch.Generator().manual_seed(n)) > 0.5 for n in news]
    trees = [tree | torch.eye(len(tree), dtype=torch.bool) for tree in trees]
    prefixed = [
        torch.cat((torch.ones(n, length - n, dtype=torch.bool), tree), 1)
        for n, length, tree in zip(news, lengths, trees, strict=True)
    ]
    flat = {"causal": None, "tree": trees, "whole": prefixed}[mask]
    tree_mask = None if flat is None else torch.cat([x.flatten() for x in flat])
    out = torch.zeros(sum(news), H, D)
    extend_attention_cpu(
        query, None, None, out, keys, values, *scales, table(), torch.tensor(rows),
        torch.tensor(lengths), torch.tensor(news), torch.tensor([0, 4]), 4, SCALE, 0.0,
        False, 0, None, None, tree_mask, True,
    )  # fmt: skip
    at = 0
    for row, length, n, visible in zip(rows, lengths, news, prefixed, strict=True):
        if mask == "causal":
            visible = torch.ones(n, length, dtype=torch.bool).tril(length - n)
        places = table()[row, :length].long()
        want = expected(query[at : at + n], keys[places], values[places], visible)
        torch.testing.assert_close(out[at : at + n], want, rtol=1e-4, atol=1e-5)
        at += n


@pytest.mark.parametrize("scales", [NEWER, OLDER], ids=["newer", "older"])
def test_decode_stores_the_token_before_it_attends(scales: tuple[float, ...]) -> None:
    keys, values = draw(PAGES, G, D), draw(PAGES, G, D, seed=1)
    query, key, value = draw(2, H, D), draw(2, G, D, seed=2), draw(2, G, D, seed=3)
    rows, lengths = torch.tensor([1, 2]), torch.tensor([5, 20])
    loc = table()[rows, lengths - 1].long()
    out = torch.zeros(2, H, D)
    decode_attention_cpu(
        query, keys, values, *scales, out, key, value, loc, torch.empty(0), table(), rows,
        lengths, SCALE, 0.0,
    )  # fmt: skip
    assert torch.equal(keys[loc], key)
    assert torch.equal(values[loc], value)
    for i, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
        places = table()[row, :length].long()
        everything = torch.ones(1, length, dtype=torch.bool)
        want = expected(query[i : i + 1], keys[places], values[places], everything)
        torch.testing.assert_close(out[i : i + 1], want, rtol=1e-4, atol=1e-5)


def test_what_it_lacks_is_refused_by_name() -> None:
    keys = draw(PAGES, G, D)
    with pytest.raises(NotImplementedError, match="sliding_window=9"):
        decode_attention_cpu(
            draw(1, H, D), keys, keys, 1.0, 1.0, draw(1, H, D), None, None, torch.tensor([0]),
            torch.empty(0), table(), torch.tensor([0]), torch.tensor([3]), SCALE, 0.0, False, 9,
        )  # fmt: skip
    with pytest.raises(NotImplementedError, match=r"scales \(0.5, 1.0\)"):
        decode_attention_cpu(draw(1, H, D), keys, keys, 0.5, 1.0)
