"""Torn and damaged files: what is lost is counted to the event, and no row is ever wrong."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import slotscope
from slotscope.instrument import layout, probe
from slotscope.instrument.arrow import events_table
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op, Role
from slotscope.instrument.scan import Scan
from slotscope.instrument.segment import SegmentError, SegmentFile


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, list[dict[str, Any]]]:
    """Bytes of a control file and of its only segment, and the events in it."""
    directory = tmp_path_factory.mktemp("whole")
    probe.start(directory, collector=False)
    for i in range(40):
        probe.emit(Op.ALLOCATE, slots=[i, i + 1, i + 2], request=i, role=Role.LIVE)
        probe.emit(Op.ADVANCE, slots=i, depth=i, launch=i + 1, forward=i)
        probe.request(f"request {i}")
    probe.stop()
    return (
        (directory / layout.control_name(0)).read_bytes(),
        (directory / layout.segment_name(0, 0)).read_bytes(),
        read(directory)[0],
    )


def read(directory: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Events, their generations not yet numbered, and gaps."""
    scan = Scan(directory)
    batch = scan.batch()
    gaps = batch.gaps + scan.open_gaps()
    assert scan.batch().empty
    return events_table(batch.events).to_pylist(), gaps


def lay(directory: Path, control: bytes, segment: bytes) -> Path:
    directory.mkdir()
    (directory / layout.control_name(0)).write_bytes(control)
    (directory / layout.segment_name(0, 0)).write_bytes(segment)
    return directory


def check(directory: Path, expected: list[dict[str, Any]]) -> int:
    """What is there was written, and what is missing is counted; how many."""
    events, gaps = read(directory)
    assert [e for e in events if e not in expected] == []
    assert len({e["seq"] for e in events}) == len(events)
    lost: int = sum(g["count"] for g in gaps)
    assert lost == len(expected) - len(events)
    assert {g["reason"] for g in gaps} <= {"damaged"}
    return lost


def test_a_flipped_bit_costs_its_record_and_no_more(tmp_path: Path, whole: Any) -> None:
    control, segment, expected = whole
    draw = random.Random(7)
    for n in range(25):
        at = draw.randrange(layout.SEGMENT_HEADER_DATA, len(segment))
        flipped = bytearray(segment)
        flipped[at] ^= 1 << draw.randrange(8)
        directory = lay(tmp_path / str(n), control, bytes(flipped))
        lost = check(directory, expected)
        _, gaps = read(directory)
        assert len(gaps) == 1
        assert f"p{0:06d}-{0:06d}.seg" in gaps[0]["detail"]
        # The size of a record may be what was hit: then the rest can't be found either.
        size_hit = "unreadable" in gaps[0]["detail"]
        assert size_hit or lost <= 3


def test_a_cut_file_is_read_to_its_last_whole_record(tmp_path: Path, whole: Any) -> None:
    control, segment, expected = whole
    draw = random.Random(8)
    for n in range(15):
        end = draw.randrange(layout.SEGMENT_HEADER_DATA, len(segment) - 8)
        directory = lay(tmp_path / str(n), control, segment[:end])
        check(directory, expected)
        events, gaps = read(directory)
        assert [e["seq"] for e in events] == list(range(len(events)))
        assert "cut off" in gaps[0]["detail"]


def test_zeroed_pages_are_counted(tmp_path: Path, whole: Any) -> None:
    """A power cut leaves holes: pages that were committed and never reached the disk."""
    control, segment, expected = whole
    holed = segment[:1024] + bytes(1024) + segment[2048:]
    assert check(lay(tmp_path / "trace", control, holed), expected) > 0


def test_a_file_that_is_no_segment_is_a_gap(tmp_path: Path, whole: Any) -> None:
    control, segment, expected = whole
    directory = lay(tmp_path / "trace", control, segment)
    (directory / layout.segment_name(0, 1)).write_bytes(b"junk" * 100)
    events, gaps = read(directory)
    assert events == expected
    assert (len(gaps), gaps[0]["reason"]) == (1, "damaged")
    assert "is no segment of slotscope" in gaps[0]["detail"]


def test_a_missing_segment_is_counted(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    for _ in range(30):
        probe.emit(Op.FREE, slots=[1, 2, 3])
        probe.note("filler", "x" * 500_000)
    probe.stop()
    (directory / layout.segment_name(0, 1)).unlink()
    events, gaps = read(directory)
    assert len(events) + sum(g["count"] for g in gaps) == 90
    (missing,) = [g for g in gaps if g["reason"] == "damaged"]
    assert 0 < missing["count"] < 30
    assert "are missing" in missing["detail"]


def test_an_unknown_version_is_refused_by_name(tmp_path: Path, whole: Any) -> None:
    _, segment, _ = whole
    path = tmp_path / "p000000-000000.seg"
    path.write_bytes(segment[:8] + (99).to_bytes(4, "little") + segment[12:])
    with pytest.raises(SegmentError, match=r"p000000-000000\.seg has version 99.*that wrote it"):
        SegmentFile(path)


def test_an_unknown_control_version_is_refused_by_name(tmp_path: Path, whole: Any) -> None:
    control, segment, _ = whole
    changed = control[:8] + (99).to_bytes(4, "little") + control[12:]
    directory = lay(tmp_path / "trace", changed, segment)
    with pytest.raises(slotscope.TraceError, match=r"version 99.*p000000\.ctl"):
        slotscope.open(directory)


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("collected", [False, True])
def test_missing_last_segments_are_counted(tmp_path: Path, crashed: bool, collected: bool) -> None:
    """Of a writer that stopped, to the event; of one that was killed, up to its last segment."""
    directory = tmp_path / "trace"
    child = os.fork()
    if child == 0:
        probe.start(directory, collector=False)
        for _ in range(30):
            probe.emit(Op.FREE, slots=[1, 2, 3])
            probe.note("filler", "x" * 500_000)
        if not crashed:
            probe.stop()
        os._exit(0)
    os.waitpid(child, 0)
    used = [p for p in sorted(directory.glob("*.seg")) if SegmentFile(p).writer is not None]
    assert len(read(directory)[0]) == 90
    assert read(directory)[1] == []
    used[-1].unlink()
    if collected:
        Collector(directory, linger_s=0).run()
    with slotscope.open(directory) as trace:
        there = trace.sql("FROM events").num_rows
        (gap,) = trace.sql("FROM gaps").to_pylist()
    assert 0 < there < 90
    assert gap["reason"] == "damaged"
    assert gap["count"] == (0 if crashed else 90 - there)
    assert "last segments of writer 1 are missing" in gap["detail"]


def test_a_trace_without_any_segment_is_not_clean(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    probe.hook("Pool.free", [Op.FREE], live=True)
    probe.emit(Op.FREE, slots=[1, 2, 3])
    probe.stop()
    (directory / layout.segment_name(0, 0)).unlink()
    assert check(directory, [{}] * 3) == 3


def test_what_was_stored_before_it_was_removed_is_not_missing(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    probe.emit(Op.FREE, slots=[1, 2, 3])
    probe.stop()
    Collector(directory, linger_s=0).run()
    (directory / layout.segment_name(0, 0)).unlink()
    with slotscope.open(directory) as trace:
        assert trace.sql("FROM events").num_rows == 3
        assert trace.sql("FROM gaps").num_rows == 0
