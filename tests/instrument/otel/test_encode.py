"""OTLP messages: equal to the SDK's, complete to the last field, and unmoved by hostile data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope as Scope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace import Status as SdkStatus
from opentelemetry.trace.status import StatusCode

from slotscope.instrument.otel import lines
from slotscope.instrument.otel.encode import encode, fill_value, requests
from slotscope.instrument.otel.spans import read

from .told import STORY, Asked, rows, story, tell

Row = dict[str, Any]

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def context(trace_id: str, span_id: str, *, remote: bool = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), remote, TraceFlags(1))


def sdk_span(row: Row) -> ReadableSpan:
    """The same span as a program would have it that uses the OpenTelemetry SDK."""
    parent = None
    if row["parent_span_id"]:
        parent = context(row["trace_id"], row["parent_span_id"], remote=row["flags"] == 0x300)
    description = row["status_message"] or None
    return ReadableSpan(
        name=row["name"],
        context=context(row["trace_id"], row["span_id"]),
        parent=parent,
        resource=Resource(json.loads(row["resource_attributes"])),
        attributes=json.loads(row["attributes"]),
        links=[
            Link(context(li["trace_id"], li["span_id"]), json.loads(li["attributes"]))
            for li in row["links"]
        ],
        kind=SpanKind[row["kind"].upper()],
        status=SdkStatus(StatusCode[row["status_code"].upper()], description),
        start_time=row["start_time_unix_nano"],
        end_time=row["end_time_unix_nano"],
        instrumentation_scope=Scope(row["scope_name"], row["scope_version"]),
    )


def differences(ours: Message, theirs: Message, path: str = "") -> Iterator[str]:
    """Where two messages of a type differ, field by field."""
    assert ours.DESCRIPTOR is theirs.DESCRIPTOR
    for field in ours.DESCRIPTOR.fields:
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        where = f"{path}.{field.name}"
        if field.message_type is None:
            if a != b:
                yield f"{where}: {a!r} != {b!r}"
        elif field.is_repeated:
            if len(a) != len(b):
                yield f"{where}: {len(a)} != {len(b)} items"
            for i, (x, y) in enumerate(zip(a, b, strict=False)):
                yield from differences(x, y, f"{where}[{i}]")
        elif ours.HasField(field.name) != theirs.HasField(field.name):
            yield f"{where}: only one is set"
        elif ours.HasField(field.name):
            yield from differences(a, b, where)


def test_messages_equal_the_sdks_field_by_field() -> None:
    told = rows(tell(STORY + " | r5+ r5+live2", Asked(1, "r-1", PARENT)), "FROM spans ORDER BY ALL")
    assert len({r["name"] for r in told}) > 10
    ours, theirs = encode(told), encode_spans([sdk_span(r) for r in told])
    assert list(differences(ours, theirs)) == []
    assert ours == theirs


def test_the_comparison_sees_a_difference() -> None:
    theirs = encode_spans([sdk_span(r) for r in story()])
    ours = encode(story())
    ours.resource_spans[0].scope_spans[0].spans[3].attributes[0].value.int_value += 1
    (difference,) = differences(ours, theirs)
    assert ".spans[3].attributes[0].value.int_value" in difference


FOREIGN = """
INSERT INTO otlp_spans VALUES (
    '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331', 'a=b', '00f067aa0ba902b7', 769, 'GET',
    'client', 5, 7, '{"s": "x", "b": true, "i": 1, "d": 1.5, "a": [1, null], "m": {"k": "v"}}', 1,
    [{'time_unix_nano': 6, 'name': 'e', 'attributes': '{"x": 1}', 'dropped_attributes_count': 2}],
    3,
    [{'trace_id': '0af7651916cd43dd8448eb211c80319c', 'span_id': 'b7ad6b7169203331',
      'trace_state': 'c=d', 'attributes': '{"y": 1}', 'dropped_attributes_count': 4, 'flags': 257}],
    5, 'error', 'broke', 'lib', '1', '{"z": 1}', 6, 'http://schema/scope', '{"r": 1}', 7,
    'http://schema/resource', NULL, NULL, NULL, NULL, NULL, NULL, NULL, false)
"""

LEFT_OUT = {
    "Resource.entity_refs": "in development; no SDK sends it",
    "KeyValue.key_strindex": "for profiles only; must not be set in traces",
    "AnyValue.string_value_strindex": "for profiles only; must not be set in traces",
    "AnyValue.bytes_value": "attributes are kept as JSON, which has no bytes",
}


def set_fields(message: Message) -> Iterator[str]:
    for field, value in message.ListFields():
        yield f"{message.DESCRIPTOR.name}.{field.name}"
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                yield from set_fields(item)


def test_every_field_of_otlp_is_kept_or_left_out_for_a_reason() -> None:
    con = tell()
    con.execute(FOREIGN)
    kept = set(set_fields(encode(rows(con, "FROM otlp_spans"))))
    descriptors: list[Descriptor] = [
        m.DESCRIPTOR
        for m in (
            *(ResourceSpans, ResourceMessage, ScopeSpans, InstrumentationScope, Span, Span.Event),
            *(Span.Link, Status, KeyValue, AnyValue),
        )
    ]
    known = {f"{d.name}.{f.name}" for d in descriptors for f in d.fields}
    assert known - kept == set(LEFT_OUT)


def test_spans_of_others_stand_beside_ours() -> None:
    con = tell()
    con.execute(FOREIGN)
    names = [r["name"] for r in rows(con, "SELECT name FROM spans")]
    assert names.count("GET") == 1
    assert len(names) == len(story()) + 1


HOSTILE = {
    "sql": "'; DROP TABLE events; --",
    "html": "<script>alert(1)</script>&amp;",
    "json": '","slotscope.open":true,"x":"\\',
    "control": "a\x00b\x1f\n\u2028\u202e",
    "beyond the BMP": "\U0001f480" * 3,
    "a megabyte": "x" * (1 << 20),
}


@pytest.mark.parametrize("request_id", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_request_id_comes_through_as_data(request_id: str) -> None:
    con = tell("r1+ r1+live3", Asked(1, request_id, client_id=request_id))
    (request,) = [r for r in rows(con) if r["name"] == "request"]
    (span,) = encode([request]).resource_spans[0].scope_spans[0].spans
    told = {a.key: a.value.string_value for a in span.attributes}
    assert told["gen_ai.request.id"] == told["slotscope.client_id"] == request_id
    assert {a.key for a in span.attributes} == {
        *("gen_ai.request.id", "gen_ai.usage.cached_tokens", "slotscope.client_id"),
        *("slotscope.attempt", "slotscope.open", "slotscope.process", "slotscope.request"),
    }


def test_a_request_is_no_larger_than_asked_for_and_holds_each_span_once() -> None:
    con = tell(STORY, Asked(0, "x" * 50_000), Asked(1, "y"))
    parts = list(requests(read(con), spans_max=5, bytes_max=10_000))
    spans = []
    for count, body in parts:
        message = ExportTraceServiceRequest.FromString(body)
        inside = [s for r in message.resource_spans for c in r.scope_spans for s in c.spans]
        assert len(inside) == count <= 5
        assert len(body) <= 10_000 or count == 1
        spans += inside
    assert sorted(s.span_id.hex() for s in spans) == sorted(r["span_id"] for r in story())


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (True, "bool_value"),
        (2**63 - 1, "int_value"),
        (-(2**63), "int_value"),
        (0.5, "double_value"),
    ],
)
def test_values_keep_their_type(value: Any, field: str) -> None:
    told = AnyValue()
    fill_value(told, value)
    assert told.WhichOneof("value") == field
    assert getattr(told, field) == value


def test_an_integer_beyond_64_bits_goes_as_text() -> None:
    told = AnyValue()
    fill_value(told, 2**63)
    assert told.string_value == str(2**63)


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match=r"json\.loads"):
        fill_value(AnyValue(), b"bytes")


def test_json_lines_have_hexadecimal_ids_and_numbers_as_otlp_wants_them() -> None:
    request = encode(r for r in story() if r["name"] == "slot.restore")
    told = lines.to_json(request)
    (span,) = told["resourceSpans"][0]["scopeSpans"][0]["spans"]
    (row,) = [r for r in story() if r["name"] == "slot.restore"]
    assert (span["traceId"], span["spanId"], span["parentSpanId"]) == (
        row["trace_id"],
        row["span_id"],
        row["parent_span_id"],
    )
    assert [li["spanId"] for li in span["links"]] == [li["span_id"] for li in row["links"]]
    assert span["kind"] == 1
    assert span["startTimeUnixNano"] == str(row["start_time_unix_nano"])
    assert span["attributes"][0] == {"key": "slotscope.process", "value": {"intValue": "0"}}
