"""The page of capacity, and what it asks."""

from __future__ import annotations

from pathlib import Path

import pytest

import slotscope
from slotscope.dashboard import capacity_chart, queries
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role
from slotscope.instrument.trace import Trace
from tests.dashboard import traces
from tests.dashboard.conftest import whole
from tests.dashboard.test_pages import Opener, charts_of, opened, said

__all__ = ["opened"]


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's checkpoint goes for a spare, which is there for a moment; another one's for nobody;
    a node is locked all along."""
    directory: Path = tmp_path_factory.mktemp("traces") / "crowded"
    probe.start(directory, collector=False)
    try:
        probe.hook("tests.dashboard.test_capacity", traces.HOOKS, live=True)
        tell = traces.Storyteller()
        request, row = tell.begin("r", 128)
        live = tell.allocate(request, Role.LIVE)
        for node in (1, 2, 3):
            slot = tell.allocate(request, Role.KEEP)
            given = {"slots": [slot], "request": request, "label": 64 * node, "node": node}
            probe.emit(Op.DONATE, role=Role.KEEP, **given)
            probe.emit(Op.INSERT, role=Role.NODE, **given)
        probe.emit(Op.LOCK, node=3, request=request, label=192)
        probe.emit(Op.ALLOCATE, request=request, role=Role.SPARE, outcome=Outcome.FAILED)
        _evict(tell, 1, 2)
        spare = tell.allocate(request, Role.SPARE)
        tell.release(spare, request, Role.SPARE)
        _evict(tell, 2, 3)
        tell.finish(request, row, live, 128)
    finally:
        probe.stop()
    return directory


def _evict(tell: traces.Storyteller, node: int, slot: int) -> None:
    probe.emit(Op.EVICT, slots=[slot], node=node, label=64 * node, role=Role.NODE)
    tell.release(slot, None, Role.NODE)


def test_slots_are_counted_by_what_they_are(crowded: Path) -> None:
    with slotscope.open(crowded) as trace:
        rows = queries.occupancy(trace, whole(trace), pool=0, bins=4).to_pylist()
    last = {row["state"]: row["slots"] for row in rows if row["bin"] == 3}
    assert last == {"live": 0, "keep": 0, "spare": 0, "cached": 1, "locked": 1}
    peaks = {row["state"]: 0 for row in rows}
    for row in rows:
        peaks[row["state"]] = max(peaks[row["state"]], row["peak"])
    assert peaks == {"live": 1, "keep": 1, "spare": 1, "cached": 3, "locked": 1}


def test_what_is_not_held_is_free() -> None:
    rows = [
        {"bin": 0, "state": "live", "slots": 2},
        {"bin": 0, "state": "cached", "slots": 3},
        {"bin": 0, "state": "locked", "slots": 1},
    ]
    filled = {row["state"]: row["slots"] for row in capacity_chart.filled(rows, 10)}
    assert filled == {"live": 2, "keep": 0, "spare": 0, "scratch": 0, "cached, locked": 1,
                      "cached": 2, "free": 5}  # fmt: skip


def test_an_eviction_is_for_the_allocation_that_had_failed(crowded: Path) -> None:
    with slotscope.open(crowded) as trace:
        rows = queries.evictions(trace, whole(trace), pool=0, limit=9).to_pylist()
    assert [(row["node"], row["purpose"], row["for_request"]) for row in rows] == [
        (1, "spare", "r"),
        (2, None, None),
    ]
    assert (rows[0]["total"], rows[0]["for_spare"]) == (2, 1)


def test_reuse_is_counted_in_requests_and_tokens(trace: Trace) -> None:
    (row,) = queries.reuse(trace, whole(trace), pool=0, bins=1).to_pylist()
    assert (row["restored"], row["cleared"]) == (1, 4)
    assert (row["reused"], row["asked"]) == (192, 130 + 70 + 255 + 200 + 255)


def test_the_page_tells_what_was_evicted_for_a_spare(crowded: Path, opened: Opener) -> None:
    test = opened(crowded, "capacity", axis="order")
    assert not test.exception
    page = said(test)
    assert "2 evicted" in page
    assert "1 for a spare" in page
    assert "does not say how many slots it has" in page
    assert len(charts_of(test)) == 4


def test_a_trace_that_lost_nothing_says_so(clean: Path, opened: Opener) -> None:
    test = opened(clean, "capacity")
    assert not test.exception
    assert "No checkpoint was evicted" in said(test)
