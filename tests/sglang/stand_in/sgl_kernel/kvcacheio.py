"""`sgl_kernel.kvcacheio`: moves of whole rows between places of the key-value cache."""

import ctypes
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


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AbsentOperator(f"kvcacheio.{name}")
