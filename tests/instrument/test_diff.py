"""Diff: two traces that say the same are the same; where they part is found, and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.diff import Answer, Comparison, compare
from slotscope.instrument.event import Op, Role

Say = Callable[[], None]


def said(directory: Path, *acts: Say, first: int = 1) -> Path:
    """A trace of one request, numbered `first`, whose allocate stands before these acts."""
    probe.start(directory, collector=False)
    try:
        probe.request("a", number=first)
        probe.emit(Op.ALLOCATE, slots=3, request=first, role=Role.LIVE)
        for act in acts:
            act()
    finally:
        probe.stop()
    return directory


def compared(a: Path, b: Path) -> Comparison:
    """Their comparison."""
    with slotscope.open(a) as first, slotscope.open(b) as second:
        return compare(first, second)


def advance(depth: int, slot: int = 3) -> Say:
    """A chunk."""
    return lambda: probe.emit(Op.ADVANCE, slots=slot, depth=depth, role=Role.LIVE)


def note() -> None:
    """What shifts every later number of a trace."""
    probe.note("weather", "fine")


def test_equal_runs_are_the_same_under_other_numbers_and_times(tmp_path: Path) -> None:
    a = said(tmp_path / "a", advance(64), advance(65))
    b = said(tmp_path / "b", note, advance(64), advance(65), first=40)
    assert compared(a, b) == Comparison(Answer.SAME, 3)
    assert compared(a, b).exit_code == 0


def test_the_first_event_that_differs_is_shown_with_what_was_before(tmp_path: Path) -> None:
    a = said(tmp_path / "a", advance(64), advance(65), advance(66))
    b = said(tmp_path / "b", advance(64), advance(67), advance(1, slot=9))
    result = compared(a, b)
    assert (result.answer, result.exit_code, result.events) == (Answer.PART, 1, 2)
    parting = result.parting
    assert parting is not None
    assert (parting.process, parting.event, parting.columns) == (0, 2, ("depth",))
    assert [row["op"] for row in parting.before] == ["allocate", "advance"]
    mine, yours = parting.sides
    assert mine.event is not None
    assert yours.event is not None
    assert (mine.event["depth"], yours.event["depth"]) == (65, 67)
    assert [row.get("depth") for row in yours.histories[3]] == [None, 64, 67]


def test_a_trace_that_ends_early_parts_at_its_end(tmp_path: Path) -> None:
    a = said(tmp_path / "a", advance(64))
    b = said(tmp_path / "b", advance(64), advance(65))
    parting = compared(a, b).parting
    assert parting is not None
    assert (parting.event, parting.columns, parting.sides[0].event) == (2, (), None)
    assert [row.get("depth") for row in parting.sides[0].histories[3]] == [None, 64]


def test_a_null_differs_from_a_value(tmp_path: Path) -> None:
    a = said(tmp_path / "a", lambda: probe.emit(Op.FREE, slots=3))
    b = said(tmp_path / "b", lambda: probe.emit(Op.FREE, slots=3, node=7))
    parting = compared(a, b).parting
    assert parting is not None
    assert parting.columns == ("node",)


def test_other_ids_are_the_same_unless_both_traces_know_them(tmp_path: Path) -> None:
    def served(directory: Path, *ids: str) -> Path:
        def begin() -> None:
            for number, request_id in enumerate(ids, 10):
                probe.request(request_id, number=number)
                probe.emit(Op.REQUEST_BEGIN, request=number, row=1)

        return said(directory, begin)

    a = served(tmp_path / "a", "x", "y")
    assert compared(a, served(tmp_path / "b", "p", "q")).answer is Answer.SAME
    swapped = compared(a, served(tmp_path / "c", "y", "x")).parting
    assert swapped is not None
    assert swapped.columns == ("request_id",)


def test_what_lost_records_cannot_be_compared(tmp_path: Path) -> None:
    a = said(tmp_path / "a", advance(64))
    b = said(tmp_path / "b", lambda: probe.emit(Op.FREE, slots=[1, 2], request=[1, 2, 3]))
    result = compared(a, b)
    assert (result.answer, result.exit_code) == (Answer.INCOMPARABLE, 2)
    assert "lost" in result.why


def test_a_trace_without_events_cannot_be_compared(tmp_path: Path) -> None:
    probe.start(tmp_path / "a", collector=False)
    probe.note("weather", "fine")
    probe.stop()
    result = compared(tmp_path / "a", said(tmp_path / "b"))
    assert (result.answer, "no events" in result.why) == (Answer.INCOMPARABLE, True)


def test_json_tells_all_of_it(tmp_path: Path) -> None:
    a = said(tmp_path / "a", advance(64))
    b = said(tmp_path / "b", advance(65))
    told = json.loads(compared(a, b).to_json())
    assert (told["answer"], told["events_same"], told["columns"]) == ("part", 1, ["depth"])
    assert told["a"]["event"]["depth"] == 64
    assert [row["op"] for row in told["b"]["histories"]["3"]] == ["allocate", "advance"]
