"""When a state is saved, and when it may be given to the tree. One strategy a file."""

from __future__ import annotations

from .extra_buffer import ExtraBuffer
from .lazy import ExtraBufferLazy
from .no_buffer import NoBuffer
from .strategy import Strategy

__all__ = ["BY_NAME", "Strategy"]

BY_NAME: dict[str, type[Strategy]] = {
    "no_buffer": NoBuffer,
    "extra_buffer": ExtraBuffer,
    "extra_buffer_lazy": ExtraBufferLazy,
}
