"""Live export: spans leave as they end, each once, and nothing waits for a receiver."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

import slotscope
from slotscope.instrument import probe, store
from slotscope.instrument.event import Kind, Op, Role
from slotscope.instrument.otel import Endpoint, Exporter, Retry
from slotscope.instrument.otel.backlog import Backlog
from slotscope.instrument.otel.window import SpanWindow
from slotscope.instrument.scan import Scan

from .conftest import Receive, Receiver, until

FAST = Retry(first_s=0.01, wait_max_s=0.05, elapsed_max_s=5)
BRIEF = Retry(first_s=0.01, wait_max_s=0.01, elapsed_max_s=0.02)


@pytest.fixture
def trace_dir(tmp_path: Path) -> Iterator[Path]:
    """This process is traced."""
    probe.start(tmp_path / "trace", collector=False)
    yield tmp_path / "trace"
    probe.stop()


class Feed:
    """Reads a trace as the collector does, generations and all, for whoever takes batches."""

    def __init__(self, directory: Path) -> None:
        self.scan = Scan(directory)
        self._con = duckdb.connect()
        store.create(self._con)
        self._tables = store.Tables(self._con)

    def into(self, exporter: Exporter | SpanWindow) -> None:
        take = exporter.offer if isinstance(exporter, Exporter) else exporter.add
        while not (batch := self.scan.batch()).empty:
            self._tables.append(batch)
            take(batch, self.scan.processes())


def turn(number: int, request: int, *, done: bool = True) -> None:
    """A forward that advances a slot, allocated before and freed after."""
    probe.emit(Op.ALLOCATE, slots=[3], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=number, kind=Kind.PREFILL, stream=0)
    probe.emit(Op.CLEAR, slots=[3], request=request, forward=number, launch=launch, depth=0)
    if done:
        probe.emit(Op.FORWARD_DONE, forward=number)
        probe.emit(Op.FREE, slots=[3], request=request, role=Role.LIVE)


def spans_of(receiver: Receiver) -> list[Span]:
    messages = [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies()]
    return [s for m in messages for r in m.resource_spans for c in r.scope_spans for s in c.spans]


def test_spans_leave_as_they_end_and_equal_those_of_the_whole_trace(
    trace_dir: Path, receive: Receive
) -> None:
    receiver = receive()
    feed = Feed(trace_dir)
    feed.scan.look()
    exporter = Exporter(
        Endpoint.of(receiver.url), feed.scan.uid, retry=FAST, period_s=0.05, settle_s=0.0
    )
    request = probe.request("r")
    probe.emit(Op.REQUEST_BEGIN, request=request, label=10)
    turn(0, request)
    turn(1, request, done=False)
    feed.into(exporter)
    until(lambda: len(spans_of(receiver)) >= 6)
    names = sorted(s.name for s in spans_of(receiver))
    # What ended is there; the request, forward 1, its clear and its lease are not.
    assert names == ["forward", "slot.allocate", "slot.allocate", "slot.clear", "slot.free",
                     "slot.lease"]  # fmt: skip
    probe.emit(Op.FORWARD_DONE, forward=1)
    probe.emit(Op.FREE, slots=[3], request=request, role=Role.LIVE)
    probe.emit(Op.REQUEST_END, request=request, depth=12)
    feed.into(exporter)
    report = exporter.close()
    with slotscope.open(trace_dir) as trace:
        told = trace.sql("SELECT span_id, open FROM spans").to_pylist()
    assert not any(row["open"] for row in told)
    arrived = [s.span_id.hex() for s in spans_of(receiver)]
    assert sorted(arrived) == sorted(row["span_id"] for row in told)
    assert report.sent == len(told)
    assert exporter.dropped_count == 0


def test_what_is_open_at_the_end_is_sent_as_open(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    feed = Feed(trace_dir)
    feed.scan.look()
    exporter = Exporter(Endpoint.of(receiver.url), feed.scan.uid, retry=FAST, settle_s=0.0)
    request = probe.request("r")
    probe.emit(Op.REQUEST_BEGIN, request=request, label=10)
    turn(0, request, done=False)
    feed.into(exporter)
    exporter.close()
    told = {s.name: [a.key for a in s.attributes] for s in spans_of(receiver)}
    assert set(told) == {"request", "forward", "slot.lease", "slot.allocate", "slot.clear"}
    assert {n for n, keys in told.items() if "slotscope.open" in keys} == set(told) - {
        "slot.allocate"
    }


def test_spans_wait_for_a_receiver_that_is_away(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    receiver.stop()
    feed = Feed(trace_dir)
    feed.scan.look()
    exporter = Exporter(
        Endpoint.of(receiver.url), feed.scan.uid, retry=BRIEF, period_s=0.02, settle_s=0.0
    )
    turn(0, probe.request("r"))
    feed.into(exporter)
    time.sleep(0.2)
    receiver.start()
    until(lambda: len(spans_of(receiver)) >= 5)
    assert exporter.close().sent == len(spans_of(receiver)) == 5


def test_a_full_queue_drops_and_counts_and_offers_return(trace_dir: Path, receive: Receive) -> None:
    receiver = receive()
    feed = Feed(trace_dir)
    feed.scan.look()
    exporter = Exporter(
        Endpoint.of(receiver.url), feed.scan.uid, retry=FAST, period_s=3600, queue_events_max=12
    )
    request = probe.request("named before the queue was full")
    for number in range(4):
        turn(number, request)
        feed.into(exporter)
    kept = probe.request("named while it is")
    probe.emit(Op.REQUEST_BEGIN, request=kept)
    probe.emit(Op.REQUEST_END, request=kept)
    feed.into(exporter)
    # Each turn is 5 events: two fit, two are dropped; then the 2 of the request fit again.
    assert exporter.dropped_count == 10
    exporter.close()
    named = [s for s in spans_of(receiver) if s.name == "request"]
    (identity,) = [a.value.string_value for s in named for a in s.attributes
                   if a.key == "gen_ai.request.id"]  # fmt: skip
    assert identity == "named while it is"


def test_a_receiver_that_never_answers_costs_a_bounded_memory(trace_dir: Path) -> None:
    """A trickle: few events in each of very many batches, with the names of their requests."""
    backlog = Backlog(events_max=10_000, batches_max=8, facts_max=16)
    feed = Feed(trace_dir)
    dropped = 0
    for number in range(100):
        probe.emit(Op.REQUEST_BEGIN, request=probe.request(f"r{number}"))
        probe.note(f"n{number}", number)
        dropped += backlog.put(feed.scan.batch())
    assert len(backlog) == 8
    assert dropped == 92
    assert backlog.facts_count <= 2 * (8 + 16) + 1
    names: list[str] = []
    while batch := backlog.take():
        names += [row["request_id"] for row in batch.requests]
    assert names[:7] == [f"r{number}" for number in range(7)]
    assert names[7:] == [f"r{number}" for number in range(84, 100)]


def test_a_dead_endpoint_fills_the_window_then_the_queue_and_no_more(trace_dir: Path) -> None:
    feed = Feed(trace_dir)
    feed.scan.look()
    exporter = Exporter(
        Endpoint.of("http://127.0.0.1:9"),
        feed.scan.uid,
        retry=BRIEF,
        period_s=0.01,
        queue_events_max=20,
        window_events_max=20,
    )
    for number in range(40):
        turn(number, probe.request(f"r{number}"))
        feed.into(exporter)
        time.sleep(0.01)
    until(lambda: exporter.waiting_count <= 4)
    # At least the newest events are neither in the window nor in the queue.
    assert exporter.dropped_count >= 40 * 5 - 20 - 25
    exporter.close(timeout_s=1)


def test_a_window_forgets_what_nothing_leans_on(trace_dir: Path) -> None:
    feed = Feed(trace_dir)
    feed.scan.look()
    window = SpanWindow(feed.scan.uid, settle_s=0.0, keep_s=0.0)
    request = probe.request("r")
    probe.emit(Op.REQUEST_BEGIN, request=request, label=10)
    for number in range(50):
        turn(number, request)
    probe.emit(Op.ALLOCATE, slots=[5], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=50, kind=Kind.PREFILL, stream=0)
    act: dict[str, Any] = {"slots": [5], "request": request, "forward": 50, "launch": launch}
    probe.emit(Op.CLEAR, depth=0, **act)
    probe.emit(Op.ADVANCE, depth=64, **act)
    probe.emit(Op.FORWARD_DONE, forward=50)
    probe.emit(Op.DONATE, slots=[5], request=request, label=64, node=1)
    feed.into(window)
    first = [batch.to_pylist() for batch in window.take(rows=1000)]
    for batch in window.take(rows=1000):
        window.mark(batch)
    assert window.forget(events_max=1000) == 0
    # The open request's begin; the open lease's allocate, last write and donate.
    assert window.events == 4
    assert list(window.take(rows=1000)) == []
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=51, kind=Kind.PREFILL, stream=0)
    probe.emit(Op.RESTORE, slots=[6], src_slot=[5], request=request, forward=51, launch=launch)
    probe.emit(Op.FORWARD_DONE, forward=51)
    feed.into(window)
    later = [row for batch in window.take(rows=1000) for row in batch.to_pylist()]
    (restore,) = [row for row in later if row["name"] == "slot.restore"]
    (donate,) = [row for rows in first for row in rows if row["name"] == "slot.donate"]
    assert restore["links"][-1]["span_id"] == donate["span_id"]
    window.close()


def test_what_lasted_longer_than_the_window_is_whole(trace_dir: Path) -> None:
    feed = Feed(trace_dir)
    feed.scan.look()
    window = SpanWindow(feed.scan.uid, settle_s=0.4, keep_s=0.4)
    told: list[dict[str, Any]] = []

    def take() -> None:
        feed.into(window)
        for batch in window.take(rows=1000):
            told.extend(batch.to_pylist())
            window.mark(batch)
        assert window.forget(events_max=1000) == 0

    request = probe.request("r")
    probe.emit(Op.REQUEST_BEGIN, request=request)
    probe.emit(Op.ALLOCATE, slots=[3], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=0, kind=Kind.PREFILL, stream=0)
    probe.emit(Op.CLEAR, slots=[3], request=request, forward=0, launch=launch, depth=0)
    take()
    time.sleep(0.5)  # Everything so far is older than the window when it ends.
    probe.emit(Op.FORWARD_DONE, forward=0)
    probe.emit(Op.FREE, slots=[3], request=request, role=Role.LIVE)
    probe.emit(Op.REQUEST_END, request=request)
    take()
    time.sleep(0.5)
    take()
    lengths = {r["name"]: r["end_time_unix_nano"] - r["start_time_unix_nano"] for r in told}
    assert len(told) == len(lengths) == 6
    assert {n for n, length in lengths.items() if length >= 0.5e9} == {
        *("request", "forward", "slot.lease", "slot.clear")
    }
    take()
    assert len(told) == 6
    assert window.events == 0
    window.close()


def test_a_window_has_a_bound_even_if_nothing_ends(trace_dir: Path) -> None:
    feed = Feed(trace_dir)
    feed.scan.look()
    window = SpanWindow(feed.scan.uid, settle_s=0.0, keep_s=3600.0)
    for number in range(20):
        turn(number, 0, done=False)
    feed.into(window)
    assert window.forget(events_max=10) == 50
    assert window.events == 10
    window.close()


def collect(directory: Path, *arguments: str, **environment: str) -> str:
    """Run a collector until everything is stored; what it says."""
    command = [sys.executable, "-m", "slotscope.instrument.collector", str(directory)]
    if arguments:
        slotscope_ = Path(sys.executable).with_name("slotscope")
        command = [str(slotscope_), "collect", str(directory), *arguments]
    told = subprocess.run(
        command,
        env=os.environ | {"SLOTSCOPE_LINGER_S": "0.1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return told.stdout


def test_a_collector_sends_what_it_stores_and_the_next_one_goes_on(
    trace_dir: Path, receive: Receive
) -> None:
    receiver = receive()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    request = probe.request("r", trace_parent=parent)
    probe.emit(Op.REQUEST_BEGIN, request=request, label=10)
    turn(0, request)
    probe.stop()
    assert "got 6 spans" in collect(trace_dir, "--otlp", receiver.url)
    before = len(receiver.bodies())
    probe.start(trace_dir, collector=False)
    turn(1, probe.request("s"))
    probe.stop()
    assert "got 5 spans" in collect(trace_dir, SLOTSCOPE_OTLP=receiver.url)
    with slotscope.open(trace_dir) as trace:
        told = trace.sql("SELECT span_id, trace_id, start_time_unix_nano AS at FROM spans")
    ids = {(s.trace_id.hex(), s.span_id.hex(), s.start_time_unix_nano) for s in spans_of(receiver)}
    assert ids == {(r["trace_id"], r["span_id"], r["at"]) for r in told.to_pylist()}
    assert len(receiver.bodies()) > before


def test_a_collector_with_a_wrong_address_stores_all_the_same(trace_dir: Path) -> None:
    turn(0, probe.request("r"))
    probe.stop()
    assert "No spans are sent: 'nowhere' is no" in collect(trace_dir, SLOTSCOPE_OTLP="nowhere")
    with slotscope.open(trace_dir) as trace:
        assert trace.stored
        assert trace.sql("SELECT count(*) AS n FROM events")["n"].to_pylist() == [5]
