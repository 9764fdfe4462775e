"""Depthwise causal convolution and SiLU: one token, a chain or tree of draft tokens, a chunk.

Sizes: N rows, D draft tokens, T tokens, C channels, W taps. The state is a window of the last W-1
inputs, oldest first. README.md has the maths.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import reference


def conv_update(
    x: Tensor, state: Tensor, weight: Tensor, bias: Tensor | None, slots: Tensor
) -> Tensor:
    """Advance each row's window by one token, in place.

    Args:
        x: [N, C].
        state: [slots, C, W-1]; only rows named by `slots` change.
        weight: [C, W], oldest tap first.
        bias: [C] or None.
        slots: [N] int64; 0 is a pad row. No other slot twice.
    Returns:
        [N, C] in x's dtype, zero for pad rows. Sums are taken in float32 or wider.
    """
    if state.is_cuda:
        from . import update

        return update.conv_update(x, state, weight, bias, slots)
    return reference.conv_update(x, state, weight, bias, slots)


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
    """Run each row's draft tokens from its window, and keep the window after every token.

    Args:
        x: [N, D, C].
        state: [slots, C, W-1]; read only.
        weight: [C, W], oldest tap first.
        bias: [C] or None.
        slots: [N] int64; 0 is a pad row, whose scratch row isn't touched. May repeat.
        windows: [scratch rows, >= D, C, W-1]; `windows[rows[i], d]` = window after token d.
        rows: [N] int64 scratch row of each row, each once among the rows that are no padding.
        parents: [N, D] int64, for trees: the token that each follows, which stands before it;
            -1 = the row's window. None: a chain, each token follows the one before it.
    Returns:
        [N, D, C] in x's dtype, zero for pad rows.
    """
    if state.is_cuda:
        from . import verify

        return verify.conv_verify(x, state, weight, bias, slots, windows, rows, parents)
    return reference.conv_verify(x, state, weight, bias, slots, windows, rows, parents)


@dataclass(frozen=True, slots=True)
class Windows:
    """The window after any number of a sequence's tokens."""

    initial: Tensor  # [C, W-1], before the first token
    x: Tensor  # [T, C]

    def after(self, tokens: int) -> Tensor:
        """The window [C, W-1] after `tokens` tokens, 0..T; 0 gives the initial one."""
        width = self.initial.shape[1]
        if not 0 <= tokens <= len(self.x):
            raise IndexError(
                f"The window after {tokens} tokens was asked for, but the sequence has"
                f" {len(self.x)}; ask for 0 to {len(self.x)}."
            )
        fresh = self.x[max(0, tokens - width) : tokens].T.to(self.initial.dtype)
        return torch.cat((self.initial[:, fresh.shape[1] :], fresh), 1)


def conv_prefill(
    x: Tensor, initial: Tensor, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Windows]:
    """Run one sequence from the window `initial`.

    Args:
        x: [T, C], T >= 1.
        initial: [C, W-1]; read only.
        weight: [C, W], oldest tap first.
        bias: [C] or None.
    Returns:
        y: [T, C] in x's dtype.
        windows: the window after any number of tokens. It reads `x` when asked; `initial` is
            copied, since it mostly lies in the state that the caller overwrites next.
    """
    if x.is_cuda:
        from . import prefill

        y = prefill.conv_prefill(x, initial, weight, bias)
    else:
        y = reference.conv_prefill(x, initial, weight, bias)
    return y, Windows(initial.clone(), x)
