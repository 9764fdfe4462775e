"""See every recurrent-state slot of a serving engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotscope.instrument.trace import Trace

__all__ = ["Trace", "__version__", "open"]
__version__ = "0.1.0"


def open(trace_dir: str | os.PathLike[str], **limits: Any) -> Trace:  # noqa: A001
    """Read a trace directory; see `slotscope.instrument.trace.open`."""
    from slotscope.instrument import trace

    return trace.open(trace_dir, **limits)


def __getattr__(name: str) -> Any:
    # An engine imports `slotscope.instrument.probe` with NumPy alone: DuckDB loads on demand.
    if name == "Trace":
        from slotscope.instrument.trace import Trace

        return Trace
    raise AttributeError(f"module 'slotscope' has no attribute {name!r}")
