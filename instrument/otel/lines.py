"""Spans as a file, of OTLP JSON lines as the OpenTelemetry file exporter writes them, or protobuf.

One ExportTraceServiceRequest per line. OTLP's JSON departs from protobuf's own in one place: ids
are hexadecimal. A Collector's `otlpjsonfile` receiver reads it.
"""

from __future__ import annotations

import base64
import json
from typing import IO, TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .encode import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

SPANS_MAX = 512
BYTES_MAX = 1 << 20
"""Of one line, as protobuf; JSON is some three times as long."""


def write(
    batches: Iterable[pa.RecordBatch],
    file: IO[str],
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write rows of the `spans` view; the number of spans.

    Raises:
        OSError: the file can't be written.
    """
    total = 0
    for count, body in requests(batches, spans_max=SPANS_MAX, bytes_max=BYTES_MAX):
        file.write(json.dumps(to_json(ExportTraceServiceRequest.FromString(body))))
        file.write("\n")
        total += count
        progress(count)
    return total


def write_delimited(
    batches: Iterable[pa.RecordBatch],
    file: IO[bytes],
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write rows of the `spans` view as protobuf requests, each behind its size in four bytes,
    big-endian, as the Collector's file exporter does (`format: proto`); the number of spans.

    Raises:
        OSError: the file can't be written.
    """
    total = 0
    for count, body in requests(batches, spans_max=SPANS_MAX, bytes_max=BYTES_MAX):
        file.write(len(body).to_bytes(4, "big"))
        file.write(body)
        total += count
        progress(count)
    return total


def to_json(request: ExportTraceServiceRequest) -> dict[str, Any]:
    """A request as OTLP's JSON: enums as numbers, 64-bit integers as text, ids hexadecimal."""
    told: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for resource in told.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                for holder in (span, *span.get("links", ())):
                    _hexadecimal(holder)
    return told


def _hexadecimal(holder: dict[str, Any]) -> None:
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in holder:
            holder[key] = base64.b64decode(holder[key]).hex()
