"""OpenTelemetry out: spans computed from slot events, and their way to any OTLP/HTTP endpoint.

import slotscope
from slotscope.instrument import otel

with slotscope.open("trace") as trace:
    report = otel.export(trace, "http://localhost:4318")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .delivery import ExportReport, export
    from .endpoint import Endpoint, EndpointError
    from .exporter import Exporter
    from .send import Retry, SendError

__all__ = [
    "Endpoint",
    "EndpointError",
    "ExportReport",
    "Exporter",
    "Retry",
    "SendError",
    "export",
]

_HOMES = {
    "Endpoint": "endpoint",
    "EndpointError": "endpoint",
    "ExportReport": "delivery",
    "Exporter": "exporter",
    "Retry": "send",
    "SendError": "send",
    "export": "delivery",
}


def __getattr__(name: str) -> Any:
    # Opening a trace takes the view from here, and shall not wait for protobuf and ssl.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
