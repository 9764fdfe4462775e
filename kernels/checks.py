"""What a Triton kernel must know of its tensors before it may follow their pointers.

The references need none of this: torch checks each access itself.
"""

from __future__ import annotations

from torch import Tensor


class KernelError(ValueError):
    """Tensors that a kernel can't take. The message says which, what it has, what is needed."""


def check_memory(name: str, memory: Tensor, inner: int) -> None:
    """Refuse state memory whose last `inner` dimensions don't lie packed.

    A quiet `.contiguous()` would work on a copy, and the state would never change.
    """
    packed = 1
    for size, stride in zip(memory.shape[::-1][:inner], memory.stride()[::-1], strict=False):
        if size != 1 and stride != packed:
            raise KernelError(
                f"{name} has shape {tuple(memory.shape)} and strides {memory.stride()}, but its"
                f" last {inner} dimensions must lie packed; the kernel would touch other bytes."
                " Pass the tensor as it was allocated, or a view along its outer dimensions."
            )
        packed *= size


def check_like(name: str, tensor: Tensor, shape: tuple[int, ...], like: Tensor) -> None:
    """Refuse a tensor that lacks this shape, or that is on another device than `like`."""
    if tuple(tensor.shape) != shape or tensor.device != like.device:
        raise KernelError(
            f"{name} is {tuple(tensor.shape)} on {tensor.device}, but must be {shape} on"
            f" {like.device}; the kernel would read past its end."
        )


def check_index(name: str, index: Tensor, rows: int, like: Tensor) -> None:
    """Refuse an index list that is no packed vector of `rows` integers on `like`'s device."""
    check_like(name, index, (rows,), like)
    if index.is_floating_point() or index.is_complex() or not index.is_contiguous():
        raise KernelError(
            f"{name} is {index.dtype} with strides {index.stride()}, but must be packed integers."
        )
