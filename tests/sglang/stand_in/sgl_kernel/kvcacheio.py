"""`sgl_kernel.kvcacheio`: moves of whole rows between places of the key-value cache."""

import ctypes
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .absent import AbsentOperator


def copy_all_layer_kv_cache_cpu(
    data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor
) -> None:
    """For each buffer, copy its rows `src_loc` to `tgt_loc`; all are read before any is written.

    Args:
        data_ptrs: addresses of the buffers. strides: bytes of one row of each.
        tgt_loc, src_loc: row numbers, pairwise.
    """
    sources, targets = src_loc.tolist(), tgt_loc.tolist()
    for base, size in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(base + source * size, size) for source in sources]
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(base + target * size, row, size)


def transfer_kv_all_layer_direct_lf_pf(
    src_ptrs: Sequence[Tensor],
    dst_ptrs: Sequence[Tensor],
    src_indices: Tensor,
    dst_indices: Tensor,
    page_size: int,
) -> None:
    """Device to host: rows of every layer go into pages that hold all layers.

    Args:
        src_ptrs: [rows, ..] for each layer of the first target, then of the next.
        dst_ptrs: [pages, layers, page_size, ..], each.
        src_indices, dst_indices: [N] row numbers, pairwise, in whole pages.
    """
    pages = dst_indices[::page_size] // page_size
    layers = len(src_ptrs) // len(dst_ptrs)
    for i, source in enumerate(src_ptrs):
        target = dst_ptrs[i // layers]
        rows = source[src_indices]
        target[pages, i % layers] = rows.view(-1, page_size, *rows.shape[1:]).to(target.dtype)


def transfer_kv_per_layer_direct_pf_lf(
    src_ptrs: Sequence[Tensor],
    dst_ptrs: Sequence[Tensor],
    src_indices: Tensor,
    dst_indices: Tensor,
    layer_id: int,
    page_size: int,
) -> None:
    """Host to device: one layer's rows out of pages that hold all layers. Shapes as above."""
    pages = src_indices[::page_size] // page_size
    for source, target in zip(src_ptrs, dst_ptrs, strict=True):
        target[dst_indices] = source[pages, layer_id].reshape(-1, *target.shape[1:])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AbsentOperator(f"kvcacheio.{name}")
