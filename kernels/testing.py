"""What kernel tests and benchmarks share: inputs, memory that shows stray touches, tolerances.

Random numbers come from torch's CPU generator, so a seed gives equal cases on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional

# Sums are taken in float32 or wider, so a bfloat16 result may be off by its own rounding alone.
TOLERANCES = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-5, 2e-5),
    torch.bfloat16: (1.6e-2, 1e-2),
}
"""Relative and absolute difference that a dtype may show between two orders of summation."""


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Equal up to the dtype's tolerance, NaN where NaN is expected and nowhere else."""
    rtol, atol = TOLERANCES[expected.dtype]
    torch.testing.assert_close(actual, expected, equal_nan=True, rtol=rtol, atol=atol)


def assert_untouched(before: Tensor, after: Tensor, written: Tensor, dim: int = 0) -> None:
    """Equal to the last bit, NaN included, in all rows along `dim` but the `written` ones."""
    kept = torch.ones(before.shape[dim], dtype=torch.bool)
    kept[written.cpu()] = False
    rows = kept.nonzero().flatten().to(before.device)
    left, right = (
        x.index_select(dim, rows).contiguous().view(torch.uint8) for x in (before, after)
    )
    assert torch.equal(left, right), "a row that no argument names has changed"


def memory(*size: int, pads: int | slice, **kind: Any) -> Tensor:
    """Random memory of this size; `memory[..., pads]` of the slot dimension is NaN.

    Args:
        size: [slots, ...], or [L, slots, ...] with `layered` in `kind`.
        pads: slot or rows that nobody may read; what is read there shows in a result.
        kind: dtype and device; `layered` (bool) says that layers come first.
    """
    layered = kind.pop("layered", False)
    filled = torch.randn(*size, dtype=torch.float64).to(**kind)
    (filled[:, pads] if layered else filled[pads]).fill_(torch.nan)
    return filled


def shuffled(rows: int, among: int, device: torch.device | None = None) -> Tensor:
    """[rows] int64: distinct numbers from 1 below `among`, in random order; the last is 0."""
    numbers = torch.randperm(among - 1)[:rows] + 1
    numbers[-1] = 0
    return numbers.to(device)


def random_trees(rows: int, tokens: int, device: torch.device | None = None) -> Tensor:
    """[rows, tokens] int64 parents: token 0 follows the state (-1), the rest any before them."""
    drawn = (torch.rand(rows, tokens) * torch.arange(tokens)).long()
    drawn[:, 0] = -1
    return drawn.to(device)


class Inputs(NamedTuple):
    """What a recurrence is fed, [..., heads, size] or [..., heads]; Mamba2's c, b, x, g, dt too."""

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor
    beta: Tensor

    def each(self, change: Callable[[Tensor], Tensor]) -> Inputs:
        """All five, changed."""
        return Inputs(*map(change, self))

    def at(self, *index: int | slice) -> Inputs:
        """All five, indexed."""
        return self.each(lambda x: x[index])


def gdn_inputs(outer: tuple[int, ...], HK: int, HV: int, K: int, V: int, **kind: Any) -> Inputs:
    """q, k, v, g and beta as a model makes them; `kind` is dtype and device."""
    q, k = (functional.normalize(torch.randn(*outer, HK, K).double(), dim=-1) for _ in "qk")
    v = torch.randn(*outer, HV, V)
    g = -3 * torch.rand(*outer, HV) ** 4  # most decays are near one, a few forget all
    beta = torch.rand(*outer, HV)
    gates = torch.promote_types(kind["dtype"], torch.float32)
    return Inputs(
        (q * K**-0.5).to(**kind),
        k.to(**kind),
        v.to(**kind),
        g.to(**kind | {"dtype": gates}),
        beta.to(**kind | {"dtype": gates}),
    )


def kda_inputs(outer: tuple[int, ...], HK: int, HV: int, K: int, V: int, **kind: Any) -> Inputs:
    """As `gdn_inputs`, with a decay for each channel, [*outer, HV, K]."""
    inputs = gdn_inputs(outer, HK, HV, K, V, **kind)
    g = -3 * torch.rand(*outer, HV, K) ** 4
    return inputs._replace(g=g.to(inputs.g))


def mamba2_inputs(outer: tuple[int, ...], HK: int, HV: int, K: int, V: int, **kind: Any) -> Inputs:
    """c, b, x, g and dt; b isn't normalised, c is so short that outputs are as large as states."""
    inputs = gdn_inputs(outer, HK, HV, K, V, **kind)
    c, b = (torch.randn(*outer, HK, K).to(inputs.q) for _ in "cb")
    return inputs._replace(q=c * K**-0.5, k=b, beta=2 * inputs.beta)


def conv_inputs(
    outer: tuple[int, ...], channels: int, taps: int, *, biased: bool = True, **kind: Any
) -> tuple[Tensor, Tensor, Tensor | None]:
    """x [*outer, C], weight [C, W], and bias [C] or None; `kind` is dtype and device."""
    x, weight, bias = (torch.randn(x) for x in ((*outer, channels), (channels, taps), (channels,)))
    return x.to(**kind), weight.to(**kind), bias.to(**kind) if biased else None


@contextmanager
def poisoned_empty() -> Iterator[None]:
    """While open, `torch.empty` and `empty_like` give NaN, so that a skipped output shows."""

    def poisoned(make: Any) -> Any:
        def made(*args: Any, **kwargs: Any) -> Tensor:
            tensor: Tensor = make(*args, **kwargs)
            return tensor.fill_(torch.nan) if tensor.is_floating_point() else tensor

        return made

    with (
        mock.patch.object(torch, "empty", poisoned(torch.empty)),
        mock.patch.object(torch, "empty_like", poisoned(torch.empty_like)),
    ):
        yield
