"""Rows of the `spans` view as OTLP messages, equal to what the OpenTelemetry SDK sends.

Each span is built as a protobuf message, at some 15 us. A vectorised encoder that writes the
bytes itself belongs beside this one, with this one as its reference.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue

Row = dict[str, Any]

INT64 = range(-(2**63), 2**63)

KINDS = {
    "unspecified": Span.SPAN_KIND_UNSPECIFIED,
    "internal": Span.SPAN_KIND_INTERNAL,
    "server": Span.SPAN_KIND_SERVER,
    "client": Span.SPAN_KIND_CLIENT,
    "producer": Span.SPAN_KIND_PRODUCER,
    "consumer": Span.SPAN_KIND_CONSUMER,
}
STATUSES = {
    "unset": Status.STATUS_CODE_UNSET,
    "ok": Status.STATUS_CODE_OK,
    "error": Status.STATUS_CODE_ERROR,
}

RESOURCE_COLUMNS = (
    "resource_attributes",
    "resource_dropped_attributes_count",
    "resource_schema_url",
)
SCOPE_COLUMNS = (
    "scope_name",
    "scope_version",
    "scope_attributes",
    "scope_dropped_attributes_count",
    "scope_schema_url",
)


def encode(rows: Iterable[Row]) -> ExportTraceServiceRequest:
    """One request for all rows, grouped by resource and scope as OTLP wants them."""
    request = ExportTraceServiceRequest()
    resources: dict[tuple[Any, ...], ResourceSpans] = {}
    scopes: dict[tuple[Any, ...], ScopeSpans] = {}
    for row in rows:
        resource = tuple(row[name] for name in RESOURCE_COLUMNS)
        scope = (*resource, *(row[name] for name in SCOPE_COLUMNS))
        if resource not in resources:
            resources[resource] = _add_resource(request, row)
        if scope not in scopes:
            scopes[scope] = _add_scope(resources[resource], row)
        _fill_span(scopes[scope].spans.add(), row)
    return request


def requests(
    batches: Iterable[pa.RecordBatch], *, spans_max: int, bytes_max: int
) -> Iterator[tuple[int, bytes]]:
    """(spans, serialized ExportTraceServiceRequest) for all rows of all batches.

    A request has at most `spans_max` spans, and at most `bytes_max` bytes before compression
    unless it has one span only: a span is never cut.
    """
    for batch in batches:
        for start in range(0, batch.num_rows, spans_max):
            yield from _fitting(list(rows_of(batch.slice(start, spans_max))), bytes_max)


def _fitting(rows: list[Row], bytes_max: int) -> Iterator[tuple[int, bytes]]:
    body = encode(rows).SerializeToString()
    if len(body) <= bytes_max or len(rows) == 1:
        yield len(rows), body
        return
    half = len(rows) // 2
    yield from _fitting(rows[:half], bytes_max)
    yield from _fitting(rows[half:], bytes_max)


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    """A batch's rows. Column by column: a third of what `to_pylist` of a batch takes."""
    names = batch.schema.names
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def fill_attributes(attributes: Any, text: str) -> None:
    """Add a JSON object's members, in its order, to a repeated KeyValue.

    In place: a message that is made first and added then is copied, which costs four times this.
    """
    for key, value in json.loads(text).items():
        fill_value(attributes.add(key=key).value, value)


def fill_value(target: AnyValue, value: object) -> None:
    """Set an AnyValue to a JSON value; null leaves it unset. OTLP has no integer beyond 64 bits:
    such a one goes as text.

    Raises:
        TypeError: the value is nothing that `json.loads` returns.
    """
    match value:
        case None:
            pass
        case bool():
            target.bool_value = value
        case int() if value in INT64:
            target.int_value = value
        case str() | int():
            target.string_value = str(value)
        case float():
            target.double_value = value
        case list():
            target.array_value.SetInParent()
            for item in value:
                fill_value(target.array_value.values.add(), item)
        case dict():
            target.kvlist_value.SetInParent()
            for key, item in value.items():
                fill_value(target.kvlist_value.values.add(key=key).value, item)
        case _:
            raise TypeError(
                f"{type(value).__name__} is no JSON value. Pass what json.loads returns."
            )


def _add_resource(request: ExportTraceServiceRequest, row: Row) -> ResourceSpans:
    added: ResourceSpans = request.resource_spans.add(schema_url=row["resource_schema_url"])
    fill_attributes(added.resource.attributes, row["resource_attributes"])
    added.resource.dropped_attributes_count = row["resource_dropped_attributes_count"]
    return added


def _add_scope(resource: ResourceSpans, row: Row) -> ScopeSpans:
    added: ScopeSpans = resource.scope_spans.add(schema_url=row["scope_schema_url"])
    added.scope.name = row["scope_name"]
    added.scope.version = row["scope_version"]
    fill_attributes(added.scope.attributes, row["scope_attributes"])
    added.scope.dropped_attributes_count = row["scope_dropped_attributes_count"]
    return added


def _fill_span(span: Span, row: Row) -> None:
    span.trace_id = bytes.fromhex(row["trace_id"])
    span.span_id = bytes.fromhex(row["span_id"])
    span.trace_state = row["trace_state"]
    span.parent_span_id = bytes.fromhex(row["parent_span_id"])
    span.flags = row["flags"]
    span.name = row["name"]
    span.kind = KINDS[row["kind"]]
    span.start_time_unix_nano = row["start_time_unix_nano"]
    span.end_time_unix_nano = row["end_time_unix_nano"]
    fill_attributes(span.attributes, row["attributes"])
    span.dropped_attributes_count = row["dropped_attributes_count"]
    for event in row["events"]:
        added = span.events.add(
            time_unix_nano=event["time_unix_nano"],
            name=event["name"],
            dropped_attributes_count=event["dropped_attributes_count"],
        )
        fill_attributes(added.attributes, event["attributes"])
    span.dropped_events_count = row["dropped_events_count"]
    for link in row["links"]:
        linked = span.links.add(
            trace_id=bytes.fromhex(link["trace_id"]),
            span_id=bytes.fromhex(link["span_id"]),
            trace_state=link["trace_state"],
            dropped_attributes_count=link["dropped_attributes_count"],
            flags=link["flags"],
        )
        fill_attributes(linked.attributes, link["attributes"])
    span.dropped_links_count = row["dropped_links_count"]
    span.status.code = STATUSES[row["status_code"]]
    span.status.message = row["status_message"]
