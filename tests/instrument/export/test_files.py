"""What other tools get of a trace."""

from __future__ import annotations

import contextlib
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Role
from slotscope.instrument.export import parquet, perfetto
from slotscope.instrument.otel import lines, spans


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """A checkpoint is written, donated and restored; its slot then begins a second life."""
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    request = probe.request("r1")
    probe.emit(Op.REQUEST_BEGIN, request=request)
    probe.emit(Op.ALLOCATE, slots=[5], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=1)
    probe.emit(Op.CLEAR, slots=[5], forward=1, launch=launch)
    probe.emit(Op.ADVANCE, slots=[5], depth=64, forward=1, launch=launch, request=request)
    probe.emit(Op.FORWARD_DONE, forward=1)
    probe.emit(Op.DONATE, slots=[5], label=64, node=7, request=request)
    probe.emit(Op.ALLOCATE, slots=[6])
    probe.emit(Op.RESTORE, slots=[6], src_slot=[5], node=7, depth=64)
    probe.emit(Op.FREE, slots=[5, 6])
    probe.emit(Op.ALLOCATE, slots=[5])
    probe.stop()
    with slotscope.open(directory) as trace:
        trace.define_spans()
        yield trace


def test_parquet_holds_the_tables(opened: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with contextlib.closing(opened.connection) as con:
        count = parquet.write(con, out)
    assert count == opened.sql("FROM events").num_rows
    for table in ("events", "requests", "processes", "anchors"):
        told = duckdb.sql(f"FROM '{out / table}.parquet' ORDER BY ALL").fetchall()
        rows = [tuple(row.values()) for row in opened.sql(f"FROM {table}").to_pylist()]
        assert len(told) == len(rows)
        assert sorted(map(repr, told)) == sorted(map(repr, rows))


def test_protobuf_holds_the_spans_of_the_json_lines(opened: Any) -> None:
    text, raw = io.StringIO(), io.BytesIO()
    for write, file in ((lines.write, text), (lines.write_delimited, raw)):
        with contextlib.closing(opened.connection) as con:
            assert write(spans.read(con, "FROM spans ORDER BY span_id"), file) > 10
    data, told = raw.getvalue(), []
    while data:
        size = int.from_bytes(data[:4], "big")
        told.append(lines.to_json(ExportTraceServiceRequest.FromString(data[4 : 4 + size])))
        data = data[4 + size :]
    assert _span_ids(told) == _span_ids(map(json.loads, text.getvalue().splitlines()))


def _span_ids(requests: Any) -> list[str]:
    return [
        span["spanId"]
        for request in requests
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_perfetto_shows_slots_as_tracks_and_links_as_arrows(opened: Any) -> None:
    file = io.StringIO()
    with contextlib.closing(opened.connection) as con:
        count = perfetto.write(con, file)
    events = json.loads(file.getvalue())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(tracks.values()) == ["slot 5", "slot 6"]
    acts = [e for e in events if e["ph"] == "X" and e["cat"] == "act"]
    assert count == len(acts) == 9
    at = {(e["tid"], e["ts"]): e["name"] for e in acts}
    assert len(at) == len(acts)
    ends: dict[int, dict[str, tuple[str, str]]] = defaultdict(dict)
    for e in events:
        if e["ph"] in "sf":
            ends[e["id"]][e["ph"]] = tracks[e["tid"]], at[e["tid"], e["ts"]]
    assert [(arrow["s"], arrow["f"]) for arrow in ends.values()] == [
        (("slot 5", "slot.advance"), ("slot 5", "slot.donate")),
        (("slot 5", "slot.donate"), ("slot 6", "slot.restore")),
    ]
    assert {e["cat"] for e in events if e["ph"] == "b"} == {"request", "forward"}


def test_slices_of_a_track_nest(opened: Any) -> None:
    file = io.StringIO()
    with contextlib.closing(opened.connection) as con:
        perfetto.write(con, file)
    events = json.loads(file.getvalue())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    leases = [e for e in slices if e["cat"] == "lease"]
    assert sorted(e["name"] for e in leases) == ["lease 1", "lease 1", "lease 3"]
    for act in (e for e in slices if e["cat"] == "act"):
        around = [
            e
            for e in leases
            if e["tid"] == act["tid"]
            and e["ts"] <= act["ts"] + 1e-6
            and act["ts"] + act["dur"] <= e["ts"] + e["dur"] + 1e-6
        ]
        assert len(around) == 1
