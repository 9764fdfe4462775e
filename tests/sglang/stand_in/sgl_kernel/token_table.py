"""Moves between the token table and flat lists, around a speculative step.

The table is [rows, positions]: where each token of each running request lies in the key-value
cache. Requests go by their row in it. B is the number of requests.
"""

from collections.abc import Iterator

import torch
from torch import Tensor


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """table[row, start:end] gets the next end - start places of `out_cache_loc`, by request."""
    for row, table, flat in _spans(req_pool_indices, start_offset, end_offset):
        req_to_token[row, table] = out_cache_loc[flat].to(req_to_token.dtype)


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """The other way: `out_cache_loc` gets table[row, start:end], request after request."""
    for row, table, flat in _spans(req_pool_indices, start_offset, end_offset):
        out_cache_loc[flat] = req_to_token[row, table].to(out_cache_loc.dtype)


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    seq_lens: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
    topk: int,
    speculative_num_steps: int,
) -> None:
    """`out_cache_loc` gets each request's next topk * steps places behind its tokens."""
    ends = seq_lens + topk * speculative_num_steps
    assign_extend_cache_locs_cpu(
        req_pool_indices, req_to_token, seq_lens, ends, out_cache_loc, pool_len
    )


def build_draft_decode_metadata_cpu(
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    topk: int,
    num_steps: int,
    pool_len: int,
) -> Tensor:
    """A table row for each branch of each draft: [B * topk, positions].

    A branch sees its request's tokens, then its own draft: branch t's places lie in the request's
    row from seq_len + t * num_steps on, and move to seq_len here.
    """
    rows = req_to_token[req_pool_indices.long()].repeat_interleave(topk, 0)
    lengths = seq_lens.repeat_interleave(topk).tolist()
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        start = length + i % topk * num_steps
        row[length : length + num_steps] = row[start : start + num_steps].clone()
    return rows


def fill_bonus_tokens_cpu(
    accept_tokens: Tensor, accept_lens: Tensor, bonus_tokens: Tensor, accept_stride: int
) -> None:
    """bonus[b] = the last accepted token of request b, whose tokens start at b * stride."""
    last = torch.arange(len(accept_lens)) * accept_stride + accept_lens.long() - 1
    bonus_tokens[: len(accept_lens)] = accept_tokens.reshape(-1)[last].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc_cpu(
    accept_index: Tensor, out_cache_loc: Tensor, accept_out_cache_loc: Tensor
) -> None:
    """The places of the accepted tokens (index > -1), packed to the front."""
    accepted = accept_index.reshape(-1)
    accepted = accepted[accepted > -1].long()
    accept_out_cache_loc[: len(accepted)] = out_cache_loc[accepted].to(accept_out_cache_loc.dtype)


def rotate_input_ids_cpu(
    input_ids: Tensor,
    extend_start_loc: Tensor,
    extend_seq_lens: Tensor,
    topk_index: Tensor,
    select_index: Tensor | None = None,
) -> None:
    """Move each request's ids one to the left; its new id goes last, or to `select_index[b]`."""
    new = topk_index.reshape(-1).to(input_ids.dtype)
    spans = zip(extend_start_loc.tolist(), extend_seq_lens.tolist(), strict=False)
    for b, (start, length) in enumerate(spans):
        if length == 0:
            continue
        input_ids[start : start + length - 1] = input_ids[start + 1 : start + length].clone()
        last = start + length - 1 if select_index is None else int(select_index[b])
        input_ids[last] = new[b]


def _spans(rows: Tensor, starts: Tensor, ends: Tensor) -> Iterator[tuple[int, slice, slice]]:
    """Row, span in the table and span in the flat list, for each request."""
    at = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=False):
        yield row, slice(start, end), slice(at, at + end - start)
        at += end - start
