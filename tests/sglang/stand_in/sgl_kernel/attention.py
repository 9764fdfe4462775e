"""Paged attention, one request at a time. Letters: H query heads, G key heads, D head size."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def extend_attention_cpu(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    output: Tensor,
    key_buffer: Tensor,
    value_buffer: Tensor,
    *scales_and_rest: Any,
) -> None:
    """Attend from the last tokens of each request to everything before and among them.

    Args:
        query, output: [T, H, D], the requests' new tokens one after the other.
        key, value: unread; SGLang has stored them in the buffers already.
        key_buffer, value_buffer: [pages, G, D], indexed by token position in the pool.
        scales_and_rest: what `_extend` takes, behind the scales of newer releases.
    """
    _extend(query, output, key_buffer, value_buffer, *_unscaled(scales_and_rest))


def decode_attention_cpu(
    query: Tensor, key_buffer: Tensor, value_buffer: Tensor, *scales_and_rest: Any
) -> None:
    """Attend from one new token a request, after storing its key and value. See `_decode`."""
    _decode(query, key_buffer, value_buffer, *_unscaled(scales_and_rest))


def _unscaled(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Drop k_scale and v_scale, which releases from 0.5.19 on pass as two leading floats."""
    if not isinstance(arguments[0], float):
        return arguments
    if arguments[:2] != (1.0, 1.0):
        raise NotImplementedError(
            f"The CPU stand-in attends to unscaled caches; it got scales {arguments[:2]}. "
            "Use a key-value cache in the model's own dtype."
        )
    return arguments[2:]


def _extend(
    query: Tensor,
    output: Tensor,
    key_buffer: Tensor,
    value_buffer: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    extend_seq_lens: Tensor,
    extend_start_loc: Tensor,
    max_len_extend: int,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool = False,
    sliding_window: int = 0,
    encoder_lens: Tensor | None = None,
    sinks: Tensor | None = None,
    tree_mask: Tensor | None = None,
    is_causal: bool = True,
) -> None:
    """As above. `tree_mask` is flat bool, for each request either [new, seq] or [new, new]."""
    _require_plain(logit_cap, is_cross_attn, sliding_window, sinks)
    news = extend_seq_lens.tolist()
    masks_new_only = tree_mask is not None and tree_mask.numel() == sum(n * n for n in news)
    read = 0
    requests = zip(
        req_pool_indices.tolist(), seq_lens.tolist(), news, extend_start_loc.tolist(), strict=False
    )
    for row, length, new, start in requests:
        if new <= 0:
            continue
        visible = None
        if tree_mask is not None:
            width = new if masks_new_only else length
            visible = tree_mask[read : read + new * width].view(new, width).bool()
            visible = F.pad(visible, (length - width, 0), value=True)
            read += new * width
        elif is_causal:
            visible = torch.ones(new, length, dtype=torch.bool).tril(length - new)
        at = req_to_token[row, :length].long()
        output[start : start + new] = _attend(
            query[start : start + new], key_buffer[at], value_buffer[at], sm_scale, visible
        )


def _decode(
    query: Tensor,
    key_buffer: Tensor,
    value_buffer: Tensor,
    output: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    loc: Tensor,
    attn_logits: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    sm_scale: float,
    logit_cap: float,
    is_cross_attn: bool = False,
    sliding_window: int = 0,
    encoder_lens: Tensor | None = None,
    sinks: Tensor | None = None,
) -> None:
    """`loc` [B]: where key and value [B, G, D] go. `attn_logits`: the real kernel's scratch."""
    _require_plain(logit_cap, is_cross_attn, sliding_window, sinks)
    if key is not None and value is not None:
        key_buffer[loc] = key.view(-1, *key_buffer.shape[1:]).to(key_buffer.dtype)
        value_buffer[loc] = value.view(-1, *value_buffer.shape[1:]).to(value_buffer.dtype)
    rows = zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=False)
    for i, (row, length) in enumerate(rows):
        at = req_to_token[row, :length].long()
        output[i : i + 1] = _attend(
            query[i : i + 1], key_buffer[at], value_buffer[at], sm_scale, None
        )


def _attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, visible: Tensor | None
) -> Tensor:
    """query [n, H, D], key and value [m, G, D], visible [n, m] or None for all -> [n, H, D]."""
    attended = F.scaled_dot_product_attention(
        query.float().transpose(0, 1),
        key.float().transpose(0, 1),
        value.float().transpose(0, 1),
        attn_mask=visible,
        scale=scale,
        enable_gqa=True,
    )
    return attended.transpose(0, 1).to(query.dtype)


def _require_plain(
    logit_cap: float, is_cross_attn: bool, sliding_window: int, sinks: Tensor | None
) -> None:
    if logit_cap or is_cross_attn or sliding_window > 0 or sinks is not None:
        raise NotImplementedError(
            f"The CPU stand-in has plain causal attention alone; it got {logit_cap=}, "
            f"{is_cross_attn=}, {sliding_window=}, sinks={sinks is not None}."
        )
