"""Flight mode: the latest segments stay, the oldest make room, and what is gone is counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op
from slotscope.instrument.scan import Scan

CALLS, SEGMENTS = 60, 4


def fly(directory: Path, segments_max: int | None) -> int:
    """One event and half a megabyte in each call, at a pace that the roller keeps up with."""
    probe.start(directory, collector=False, segments_max=segments_max)
    probe.hook("Pool.free", [Op.FREE], live=True)
    for i in range(CALLS):
        probe.emit(Op.FREE, slots=i)
        probe.request("x" * 500_000)
        time.sleep(0.02)
    probe.stop()
    return len(list(directory.glob("*.seg")))


@pytest.mark.parametrize("collected", [False, True])
def test_the_oldest_make_room_and_are_counted(tmp_path: Path, collected: bool) -> None:
    directory = tmp_path / "trace"
    assert fly(directory, SEGMENTS) <= SEGMENTS
    if collected:
        Collector(directory, linger_s=0).run()
    with slotscope.open(directory) as trace:
        slots = trace.sql("SELECT slot FROM events ORDER BY seq")["slot"].to_pylist()
        orders = trace.sql('SELECT "order" FROM events')["order"].to_pylist()
        gaps = trace.sql("FROM gaps").to_pylist()
        hooks = trace.sql("FROM hooks").to_pylist()
    assert 0 < len(slots) < CALLS
    assert slots == list(range(CALLS - len(slots), CALLS))
    by_reason = {
        reason: sum(g["count"] for g in gaps if g["reason"] == reason)
        for reason in {g["reason"] for g in gaps}
    }
    assert min(orders) - 1 <= max(g["last_order"] for g in gaps) <= min(orders)
    assert by_reason == {"overwritten": CALLS - len(slots)}
    assert [(h["name"], h["op"]) for h in hooks] == [("Pool.free", "free")]


@pytest.mark.parametrize("segments_max", ["3", "many"])
def test_a_number_that_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segments_max: str
) -> None:
    monkeypatch.setenv(probe.ENVIRONMENT, str(tmp_path / "trace"))
    monkeypatch.setenv(probe.SEGMENTS_MAX, segments_max)
    with pytest.raises(probe.ProbeError, match=segments_max):
        probe.start_from_environment()
    assert not (tmp_path / "trace").exists()


def test_otherwise_all_stay(tmp_path: Path) -> None:
    assert fly(tmp_path / "trace", None) > SEGMENTS
    with slotscope.open(tmp_path / "trace") as trace:
        assert trace.sql("FROM events").num_rows == CALLS
        assert trace.sql("FROM gaps").num_rows == 0


def test_what_was_read_before_it_made_room_is_not_missing(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    probe.start(directory, collector=False, segments_max=2 * SEGMENTS)
    scan, count = Scan(directory), 0
    for i in range(CALLS):
        probe.emit(Op.FREE, slots=i)
        probe.request("x" * 500_000)
        time.sleep(0.02)
        batch = scan.batch()
        assert batch.gaps == []
        count += len(batch.events["seq"])
    probe.stop()
    assert count == CALLS
    assert len(list(directory.glob("*.seg"))) < CALLS // 8
    assert scan.batch().gaps == scan.open_gaps() == []
