"""Depthwise causal convolution and SiLU in torch. Arguments: see `slotscope.kernels.conv`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def conv_update(
    x: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None, slots: Tensor
) -> Tensor:
    """See `slotscope.kernels.conv.conv_update`."""
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        y = torch.zeros_like(x, memory_format=torch.contiguous_format)
        y[live] = conv_update(x[live], state, weight, bias, slots[live])
        return y
    window = state.index_select(0, slots)
    shifted = torch.cat((window[..., 1:], x.unsqueeze(-1).to(state.dtype)), -1)
    state.index_copy_(0, slots, shifted)
    dtype = torch.promote_types(x.dtype, torch.float32)
    window, weight = window.to(dtype), weight.to(dtype)
    # Tap by tap, since a sum over the short last dimension takes twice as long.
    y = x.to(dtype) * weight[:, -1]
    for tap in range(window.shape[-1]):
        y.addcmul_(window[..., tap], weight[:, tap])
    if bias is not None:
        y += bias
    return functional.silu(y, inplace=True).to(x.dtype)


def conv_verify(
    x: Tensor,
    state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    slots: Tensor,
    windows: Tensor,
    rows: Tensor,
    parents: Tensor | None = None,
) -> Tensor:
    """See `slotscope.kernels.conv.conv_verify`."""
    live = slots.nonzero().flatten()
    if len(live) < len(slots):
        y = torch.zeros_like(x, memory_format=torch.contiguous_format)
        tree = None if parents is None else parents[live]
        y[live] = conv_verify(x[live], state, weight, bias, slots[live], windows, rows[live], tree)
        return y
    tokens, width = x.shape[1], state.shape[2]
    inputs = torch.cat((state.index_select(0, slots).mT, x), 1)  # [N, W-1+D, C]
    if parents is None:
        windows[rows, :tokens] = inputs.unfold(1, width, 1)[:, 1:]
        return filtered(inputs, weight, bias)
    path = width + ancestors(parents, width + 1)  # [N, D, W] places in `inputs`
    taken = inputs[torch.arange(len(x), device=x.device)[:, None, None], path]  # [N, D, W, C]
    windows[rows, :tokens] = taken[:, :, 1:].mT
    return filtered(taken.flatten(0, 1), weight, bias).reshape(x.shape)


def ancestors(parents: Tensor, count: int) -> Tensor:
    """The last `count` inputs of each token of a tree, itself included, oldest first.

    Args:
        parents: [N, D] int64; -1 = what came before the tree.
    Returns:
        [N, D, count] int64: a token's number, or -1, -2, ... for the inputs before the tree.
    """
    at = torch.arange(parents.shape[1], device=parents.device).expand_as(parents)
    path = [at]
    for _ in range(count - 1):
        at = torch.where(at >= 0, parents.gather(1, at.clamp(min=0)), at - 1)
        path.append(at)
    return torch.stack(path[::-1], -1)


def conv_prefill(x: Tensor, initial: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """See `slotscope.kernels.conv.conv_prefill`; returns y alone."""
    return filtered(torch.cat((initial.T, x)).unsqueeze(0), weight, bias).squeeze(0)


def filtered(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """SiLU of the convolution, [N, W-1+T, C] to [N, T, C].

    A sum of shifted inputs: no transposition to channels first, and fast in every dtype, where
    torch's depthwise conv1d is slow in float64.
    """
    dtype = torch.promote_types(inputs.dtype, torch.float32)
    taps = weight.shape[1]
    tokens = inputs.shape[1] - taps + 1
    wide, weight = inputs.to(dtype), weight.to(dtype)
    y = wide[:, :tokens] * weight[:, 0]
    for tap in range(1, taps):
        y.addcmul_(wide[:, tap : tap + tokens], weight[:, tap])
    if bias is not None:
        y += bias
    return functional.silu(y, inplace=True).to(inputs.dtype)
