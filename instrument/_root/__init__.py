"""See every recurrent-state slot of a serving engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotscope.instrument.schema import SchemaError
    from slotscope.instrument.trace import QueryError, Trace, TraceError

__all__ = ["QueryError", "SchemaError", "Trace", "TraceError", "__version__", "open"]
__version__ = "0.1.0"


def open(trace_dir: str | os.PathLike[str], **limits: Any) -> Trace:
    """Read a trace directory; see `slotscope.instrument.trace.open`."""
    from slotscope.instrument import trace

    return trace.open(trace_dir, **limits)


def __getattr__(name: str) -> Any:
    # An engine imports `slotscope.instrument.probe` with NumPy alone: DuckDB loads on demand.
    if name in {"QueryError", "Trace", "TraceError", "SchemaError"}:
        from slotscope.instrument import trace

        return getattr(trace, name)
    raise AttributeError(f"module 'slotscope' has no attribute {name!r}")
