"""Calls of torch that need an accelerator, made harmless on a machine without one."""

import functools
from collections.abc import Callable
from typing import Any

import torch


def register() -> None:
    """Make pinning and stream bookkeeping no-ops; does nothing where CUDA is available.

    SGLang pins host buffers and records streams unconditionally. On a CPU both would raise, and
    neither has a meaning: one memory, and one stream on which everything runs in order.
    """
    if torch.cuda.is_available():
        return
    replacements: dict[str, Callable[..., Any]] = {
        "Tensor.pin_memory": lambda tensor, device=None: tensor,
        "Tensor.record_stream": lambda tensor, stream: None,
        "cuda.synchronize": lambda device=None: None,
    }
    for place, replacement in replacements.items():
        home, name = place.split(".")
        setattr(getattr(torch, home), name, replacement)
    for factory in ("tensor", "empty", "zeros", "full"):
        setattr(torch, factory, _unpinned(getattr(torch, factory)))


def _unpinned(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Releases up to 0.5.18 pass `pin_memory=True` to factories."""

    @functools.wraps(factory)
    def make(*args: Any, **named: Any) -> torch.Tensor:
        named.pop("pin_memory", None)
        return factory(*args, **named)

    return make
