"""Through an OpenTelemetry Collector that is not ours: Rotel, written in Rust, from PyPI.

It takes OTLP/HTTP, parses it into its own structures, batches anew and sends OTLP/HTTP on. What
comes out is what went in, so another implementation reads our messages as we mean them.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from slotscope.instrument.otel import Retry
from slotscope.instrument.otel.delivery import ExportReport, send_batches
from slotscope.instrument.otel.encode import encode
from slotscope.instrument.otel.endpoint import Endpoint
from slotscope.instrument.otel.send import Sender
from slotscope.instrument.otel.spans import read

from .conftest import Receive, Receiver, until
from .told import STORY, Asked, rows, tell


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def collector(receive: Receive, tmp_path: Path) -> Iterator[tuple[str, Receiver]]:
    """The URL of a Collector, and the receiver that it sends to."""
    spec = find_spec("rotel")
    assert spec is not None, "Install the dev group: it holds the Collector rotel."
    assert spec.origin is not None
    receiver, port = receive(), free_port()
    command = [
        str(Path(spec.origin).with_name("rotel-agent")),
        "start",
        *("--otlp-http-endpoint", f"127.0.0.1:{port}"),
        *("--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}"),
        *("--exporter", "otlp", "--otlp-exporter-protocol", "http"),
        *("--otlp-exporter-endpoint", receiver.url),
        *("--batch-timeout", "50ms"),
    ]
    with (tmp_path / "rotel.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: listens(port))
        yield f"http://127.0.0.1:{port}", receiver
    finally:
        process.terminate()
        process.wait()


def test_a_collector_passes_on_what_we_sent(collector: tuple[str, Receiver]) -> None:
    url, receiver = collector
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    con = tell(STORY + " | r5+ r5+live2", Asked(1, "<b>'1'; --</b>\x00\u2028", parent))
    con.execute("INSERT INTO notes VALUES (0, 'engine.name', 'x', 1)")
    ours = encode(rows(con))
    sent = {s.span_id: (r.resource, c.scope, s) for r in ours.resource_spans
            for c in r.scope_spans for s in c.spans}  # fmt: skip

    report = ExportReport()
    with Sender(Endpoint.of(url), retry=Retry(first_s=0.05)) as sender:
        send_batches(read(con), sender, report)
    assert (report.sent, report.rejected) == (len(sent), 0)

    def arrived() -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies()]

    until(lambda: sum(len(c.spans) for m in arrived() for r in m.resource_spans
                      for c in r.scope_spans) >= len(sent))  # fmt: skip
    passed = {s.span_id: (r.resource, c.scope, s) for m in arrived() for r in m.resource_spans
              for c in r.scope_spans for s in c.spans}  # fmt: skip
    assert passed == sent
