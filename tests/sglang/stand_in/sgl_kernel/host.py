"""Calls of torch that need an accelerator, made harmless on a machine without one."""

import functools
from collections.abc import Callable
from typing import Any

import torch


def without_accelerator() -> None:
    """Make pinning and stream bookkeeping no-ops; does nothing where CUDA is available.

    SGLang pins host buffers and records streams unconditionally. On a CPU both would raise, and
    neither has a meaning: one memory, and one stream on which everything runs in order.
    """
    if torch.cuda.is_available():
        return
    torch.Tensor.pin_memory = lambda self, device=None: self  # type: ignore[method-assign]
    torch.Tensor.record_stream = lambda self, stream: None  # type: ignore[method-assign]
    torch.cuda.synchronize = lambda device=None: None
    for factory in ("tensor", "empty", "zeros", "full"):
        setattr(torch, factory, _unpinned(getattr(torch, factory)))


def _unpinned(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Releases up to 0.5.18 pass `pin_memory=True` to factories."""

    @functools.wraps(factory)
    def make(*args: Any, **named: Any) -> torch.Tensor:
        named.pop("pin_memory", None)
        return factory(*args, **named)

    return make
