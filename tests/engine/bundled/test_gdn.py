"""The chunked delta rule of training against the recurrence, token by token."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from slotscope.engine.bundled.make.gdn import gated_delta_rule


def recurrence(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    state = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1])
    out = []
    for t in range(q.shape[2]):
        state = state * g[:, :, t, None, None].exp()
        error = v[:, :, t] - torch.einsum("bhk,bhkv->bhv", k[:, :, t], state)
        write = beta[:, :, t, None] * error
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, :, t], write)
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, :, t], state))
    return torch.stack(out, dim=2)


def inputs(tokens: int) -> list[Tensor]:
    torch.manual_seed(7)
    q, k = (torch.nn.functional.normalize(torch.randn(2, 3, tokens, 8).double(), dim=-1),) * 2
    v = torch.randn(2, 3, tokens, 16).double()
    g = -torch.rand(2, 3, tokens).double()
    beta = torch.rand(2, 3, tokens).double()
    return [x.clone().requires_grad_() for x in (q.roll(1, 2), k, v, g, beta)]


def test_outputs_and_gradients_equal_the_recurrence() -> None:
    chunked, stepped = inputs(192), inputs(192)
    got, expected = gated_delta_rule(*chunked), recurrence(*stepped)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)
    got.square().sum().backward()
    expected.square().sum().backward()
    for ours, reference in zip(chunked, stepped, strict=True):
        torch.testing.assert_close(ours.grad, reference.grad, rtol=1e-8, atol=1e-8)


def test_odd_length_is_refused() -> None:
    with pytest.raises(ValueError, match="100 tokens are no multiple of the chunk, 64"):
        gated_delta_rule(*inputs(100))
