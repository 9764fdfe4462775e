"""Whole traces, written by the probe in a process of their own, to a receiver that listens."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import slotscope
from slotscope.instrument import otel
from slotscope.instrument.otel import Retry, SendError

from .conftest import Receive

FAST = Retry(first_s=0.01, wait_max_s=0.02, elapsed_max_s=5)
BRIEF = Retry(first_s=0.01, wait_max_s=0.02, elapsed_max_s=0.1)

PROGRAM = """
import sys
from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role

probe.start(sys.argv[1], collector=False)
probe.note("engine.name", "tester")
request = probe.request("r" * int(sys.argv[2]))
probe.emit(Op.REQUEST_BEGIN, request=request, label=100)
for turn in range(int(sys.argv[3])):
    probe.emit(Op.ALLOCATE, slots=[3], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=turn, kind=Kind.PREFILL, stream=0)
    said = dict(slots=[3], request=request, forward=turn, launch=launch)
    probe.emit(Op.CLEAR, depth=0, **said)
    probe.emit(Op.ADVANCE, depth_before=0, depth=64, **said)
    probe.emit(Op.FORWARD_DONE, forward=turn)
    probe.emit(Op.FREE, slots=[3], request=request, role=Role.LIVE)
probe.stop()
"""


@pytest.fixture(scope="module")
def trace_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of one request, open, and 400 forwards: 2401 spans."""
    return record(tmp_path_factory.mktemp("trace"), turns=400)


SPANS = 400 * 6 + 1


def record(directory: Path, *, turns: int, letters: int = 3) -> Path:
    command = [sys.executable, "-c", PROGRAM, str(directory), str(letters), str(turns)]
    subprocess.run(command, check=True)
    return directory


def spans_in(bodies: list[bytes]) -> list[Span]:
    messages = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    return [s for m in messages for r in m.resource_spans for c in r.scope_spans for s in c.spans]


def test_every_span_of_a_trace_arrives_once(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    seen: list[int] = []
    with slotscope.open(trace_dir) as trace:
        report = otel.export(trace, receiver.url, progress=seen.append)
        told = trace.sql("SELECT span_id FROM spans")["span_id"].to_pylist()
    arrived = [s.span_id.hex() for s in spans_in(receiver.bodies())]
    assert sorted(arrived) == sorted(told)
    assert len(set(arrived)) == len(arrived) == SPANS == report.sent == sum(seen)
    assert report.complete
    assert report.requests == len(receiver.bodies()) > 1


def test_a_second_export_has_the_same_ids(trace_dir: Path, receive: Receive) -> None:
    first, second = receive(), receive()
    for receiver in (first, second):
        with slotscope.open(trace_dir) as trace:
            otel.export(trace, receiver.url)
    one, other = ({(s.trace_id, s.span_id) for s in spans_in(r.bodies())} for r in (first, second))
    assert one == other


def test_a_part_can_be_chosen(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    with slotscope.open(trace_dir) as trace:
        otel.export(trace, receiver.url, query="FROM spans WHERE name = 'slot.lease'")
    assert {s.name for s in spans_in(receiver.bodies())} == {"slot.lease"}
    assert len(spans_in(receiver.bodies())) == 400


def test_a_request_that_is_refused_costs_only_its_own_spans(
    trace_dir: Path, receive: Receive
) -> None:
    receiver = receive({"status": 400})
    with slotscope.open(trace_dir) as trace:
        report = otel.export(trace, receiver.url)
    assert report.failed == len(spans_in(receiver.bodies()[:1]))
    assert report.sent == SPANS - report.failed
    assert not report.complete
    assert "HTTP 400" in report.messages[0]


def test_rejected_spans_are_counted_and_the_reason_kept(trace_dir: Path, receive: Receive) -> None:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 7
    response.partial_success.error_message = "too old"
    body = base64.b64encode(response.SerializeToString()).decode()
    with slotscope.open(trace_dir) as trace:
        report = otel.export(trace, receive({"status": 200, "body": body}).url)
    assert (report.rejected, report.sent, report.messages) == (7, SPANS - 7, ["too old"])


def test_a_receiver_that_is_away_for_a_while_gets_all(trace_dir: Path, receive: Receive) -> None:
    receiver = receive({"status": 503}, {"status": 200}, {"status": 429})
    with slotscope.open(trace_dir) as trace:
        report = otel.export(trace, receiver.url, retry=FAST)
    assert (report.sent, report.retries) == (SPANS, 2)


def test_a_receiver_that_is_gone_is_an_error(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    receiver.stop()
    with slotscope.open(trace_dir) as trace, pytest.raises(SendError, match="took no spans"):
        otel.export(trace, receiver.url, retry=BRIEF)
    receiver.start()


def test_a_long_request_id_is_sent_once_for_each_request(tmp_path: Path, receive: Receive) -> None:
    receiver = receive()
    with slotscope.open(record(tmp_path / "trace", turns=2, letters=1 << 20)) as trace:
        otel.export(trace, receiver.url)
    names = [
        a.value.string_value
        for s in spans_in(receiver.bodies())
        for a in s.attributes
        if a.key == "gen_ai.request.id"
    ]
    assert [len(n) for n in names] == [1 << 20]


def slotscope_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("slotscope"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_sends_and_tells(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    done = slotscope_command(
        "export", str(trace_dir), "--otlp", receiver.url, "--header", "x-api-key=a%20b"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{SPANS:,} spans sent" in done.stdout
    assert receiver.headers()[0]["x-api-key"] == "a b"


def test_the_command_fails_if_spans_were_refused(trace_dir: Path, receive: Receive) -> None:
    done = slotscope_command("export", str(trace_dir), "--otlp", receive({"status": 400}).url)
    assert done.returncode == 1
    assert "were refused" in done.stdout


def test_the_command_writes_json_lines(trace_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    done = slotscope_command("export", str(trace_dir), "--to", "otlp-json", "--out", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    spans = _spans_of(path.read_text())
    assert len(spans) == SPANS
    shown = slotscope_command("export", str(trace_dir), "--to", "otlp-json", "--out", "-")
    assert _spans_of(shown.stdout) == spans


def _spans_of(lines: str) -> dict[str, Any]:
    """The spans of OTLP JSON lines by id, each there once; OTLP leaves their order open."""
    spans = [
        span
        for line in lines.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    for span in spans:
        span.get("links", []).sort(key=lambda link: link["spanId"])
    by_id = {span["spanId"]: span for span in spans}
    assert len(by_id) == len(spans)
    return by_id


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nowhere to export to"),
        (["--otlp", "localhost:4318"], "http://localhost:4318"),
        (["--otlp", "http://localhost", "--header", "x"], "name=value"),
        (["--to", "otlp-json", "--out", "/nowhere/spans"], "/nowhere/spans"),
    ],
)
def test_bad_usage_is_one_line_with_its_cure(
    trace_dir: Path, arguments: list[str], message: str
) -> None:
    done = slotscope_command("export", str(trace_dir), *arguments)
    assert done.returncode == 3
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
