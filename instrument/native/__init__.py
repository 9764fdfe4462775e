"""Native: the compiled way of `probe.emit`, where a compiler was at hand when this was installed.

Without it everything goes through `writer`, which stays the only way of the calls that are not
common, and the oracle: both write the same bytes.
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
"""0 leaves the compiled way unused."""


def compiled(slowly: Callable[..., int]) -> ModuleType | None:
    """The compiled module, told of the layout, and to hand to `slowly` what is not common.

    None where it was not built, the environment says so, or the machine is not little-endian.
    """
    if os.environ.get(ENVIRONMENT) == "0" or sys.byteorder != "little":
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
