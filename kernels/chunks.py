"""What the chunked forms of all recurrences share: cutting, and following chunk after chunk."""

from __future__ import annotations

import torch
from torch import Tensor


def cut(x: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """A copy of [T, H, F] as [chunks, H, size, F]; its last chunk's zeros move no state."""
    tokens, heads, width = x.shape
    chunks = -(-tokens // size)
    out = x.new_empty((chunks, heads, size, width), dtype=dtype)
    whole = tokens // size
    out[:whole] = x[: whole * size].view(whole, size, heads, width).transpose(1, 2)
    if whole < chunks:
        out[whole].zero_()[:, : tokens - whole * size] = x[whole * size :].transpose(0, 1)
    return out


def joined(o: Tensor, tokens: int) -> Tensor:
    """Outputs [chunks, H, size, V] as [tokens, H, V]: what `cut` did, undone."""
    return o.transpose(1, 2).flatten(0, 1)[:tokens]


def follow_delta(
    solved: Tensor,
    query: Tensor,
    attention: Tensor,
    kept: Tensor,
    decay: Tensor,
    initial: Tensor,
) -> tuple[Tensor, Tensor]:
    """Chunk after chunk of a delta rule, whose writes depend on the state before the chunk.

    Args:
        solved: [chunks, HV, size, V + K], what a chunk writes, and what of the state it takes away.
        query: [chunks, HV, size, K], faded from the chunk's start.
        attention: [chunks, HV, size, size], lower triangular.
        kept: [chunks, HV, K, size], keys faded to the chunk's end.
        decay: [chunks, HV, K or 1, 1], of the whole chunk.
        initial: [HV, K, V].
    Returns:
        outputs [chunks, HV, size, V] and the state after each chunk.
    """
    size, width = query.shape[2], initial.shape[-1]
    writes = solved[..., :width]
    reads = torch.cat((solved[..., width:], query), -2)  # both meet the chunk's first state
    o = writes.new_empty(writes.shape)
    state, states = initial, initial.new_empty((len(writes), *initial.shape))
    for i in range(len(writes)):
        read = reads[i] @ state
        written = writes[i] - read[:, :size]
        torch.baddbmm(read[:, size:], attention[i], written, out=o[i])
        state = torch.baddbmm(state * decay[i], kept[i], written, out=states[i])
    return o, states
