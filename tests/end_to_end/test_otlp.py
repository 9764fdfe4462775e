"""A served run as spans at a real OTLP/HTTP receiver: each thing that happened, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import slotscope
from tests.end_to_end import stored
from tests.end_to_end.server import Clients, run, serving
from tests.instrument.otel.conftest import Receiver

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CALLER_ID = "b7ad6b7169203331"

COUNTS = """
SELECT (SELECT count(*) FROM events
        WHERE op NOT IN ('request.begin', 'request.end', 'forward.launch', 'forward.done'))
           AS slot_events,
       (SELECT count(*) FROM leases) AS leases,
       (SELECT count(*) FROM requests) AS requests,
       (SELECT count(*) FROM forwards) AS forwards
"""
"""Both ends of a request, and of a forward, make one span."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Receiver]:
    """Gets spans while the server runs."""
    yield from receiving(tmp_path / "live")


@pytest.fixture
def late(tmp_path: Path) -> Iterator[Receiver]:
    """Gets the whole trace at the end."""
    yield from receiving(tmp_path / "late")


def receiving(directory: Path) -> Iterator[Receiver]:
    directory.mkdir()
    receiver = Receiver(directory, [])
    yield receiver
    receiver.stop()


def received(receiver: Receiver) -> list[Span]:
    """All spans that came."""
    return [
        span
        for body in receiver.bodies()
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def ids(spans: list[Span]) -> list[tuple[str, str]]:
    return sorted((span.span_id.hex(), span.name) for span in spans)


def test_every_event_lease_request_and_forward_is_one_span(
    folder: Path, tmp_path: Path, live: Receiver, late: Receiver
) -> None:
    trace = tmp_path / "trace"
    flags = ("--speculative-algorithm", "NEXTN", "--max-mamba-cache-size", "10")
    with serving(folder, trace, *flags, SLOTSCOPE_OTLP=live.url) as server:
        with Clients(server.url, seed=6) as clients:
            clients.stream(200)
        assert clients.failures == []
        server.generate([7] * 70, 4, traceparent=f"00-{TRACE_ID}-{CALLER_ID}-01")
        server.end()
    stored.collected(trace)
    done = run("export", trace, "--otlp", late.url)
    assert done.returncode == 0, done.stderr
    with slotscope.open(trace) as opened:
        (count,) = opened.sql(COUNTS).to_pylist()
        known = [
            tuple(row.values()) for row in opened.sql("SELECT span_id, name FROM spans").to_pylist()
        ]
    assert (
        len(known) == count["slot_events"] + count["leases"] + count["requests"] + count["forwards"]
    )
    assert len({span_id for span_id, _ in known}) == len(known)
    assert ids(received(late)) == sorted(known)
    assert ids(received(live)) == sorted(known)

    spans = received(late)
    (called,) = [span for span in spans if span.parent_span_id.hex() == CALLER_ID]
    assert (called.name, called.trace_id.hex()) == ("request", TRACE_ID)
    present = {span.span_id for span in spans} | {b"", bytes.fromhex(CALLER_ID)}
    assert {span.parent_span_id for span in spans} <= present
