"""Native: what is compiled where a compiler was at hand when this was installed.

`ring` is the quick way of `probe.emit`. Without it everything goes through `writer`, which stays
the only way of the calls that are not common, and the oracle: both write the same bytes. `walk`
checks the records of a segment, as `segment.walk` does in Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from slotscope.instrument.layout import (
    COLUMNS,
    COMMIT_SHIFT,
    OP_CODES,
    SEGMENT_SIZE,
    WORD_COMMIT,
)

ENVIRONMENT = "SLOTSCOPE_COMPILED"
"""0 leaves both unused."""


def load_ring(slowly: Callable[..., int]) -> ModuleType | None:
    """The compiled module, told of the layout, and to hand to `slowly` what is not common.

    None where it was not built, the environment says so, or the machine is not little-endian.
    """
    if not _wanted():
        return None
    try:
        from . import ring
    except ImportError:
        return None
    columns: tuple[Any, ...] = tuple(
        (c.argument, c.bit, c.dtype.itemsize, int(c.listable)) for c in COLUMNS
    )
    ring.configure(columns, SEGMENT_SIZE, WORD_COMMIT, COMMIT_SHIFT, OP_CODES, slowly)
    return ring


def load_walk() -> Callable[[bytes], tuple[bytes, bytes, int]] | None:
    """The compiled `segment.walk`, its offsets as the bytes of int64; None as `load_ring`."""
    if not _wanted():
        return None
    try:
        from . import walk as found
    except ImportError:
        return None
    return found.walk


def _wanted() -> bool:
    return os.environ.get(ENVIRONMENT) != "0" and sys.byteorder == "little"
