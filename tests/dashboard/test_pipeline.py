"""The page of the pipeline, and what it asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import slotscope
from slotscope.dashboard import pipeline_chart, queries
from slotscope.instrument.trace import Trace
from tests.dashboard.conftest import HOSTILE, whole
from tests.dashboard.test_pages import Opener, charts_of, opened, said, table

__all__ = ["opened"]

Paired = Callable[[str], Path]
STAGES = [(0, 0), (0, 1)]


@pytest.fixture
def wrong(paired: Paired) -> Trace:
    return slotscope.open(paired("wrong"))


def test_each_stage_computes_each_forward_once(wrong: Trace) -> None:
    rows = queries.computes(wrong, whole(wrong), limit=100).to_pylist()
    assert len(rows) == 2 * 8  # stages x (two prefills, six verifies)
    assert all(row["x"] <= row["x2"] for row in rows)
    for pool in (0, 1):
        mine = [row for row in rows if row["pool"] == pool]
        assert all(a["x2"] <= b["x"] for a, b in zip(mine, mine[1:], strict=False))


def test_what_is_left_out_is_counted(wrong: Trace) -> None:
    axis = whole(wrong)
    assert [row["total"] for row in queries.computes(wrong, axis, limit=3).to_pylist()] == [16] * 3
    pairs = queries.pairs(wrong, axis, limit=5).to_pylist()
    assert [pair["pairing"] for pair in pairs] == ["wrong"] * 5
    assert pairs[0]["total"] == 12


def test_the_vicinity_of_a_forward_has_its_neighbours(wrong: Trace) -> None:
    axis = whole(wrong)
    near = queries.vicinity(wrong, axis, 0.0, forward=6, before=1, after=1)
    launched = [row["forward"] for row in queries.computes(wrong, near, limit=100).to_pylist()]
    assert 6 in launched
    assert 1 not in launched
    assert queries.vicinity(wrong, axis, axis.high, forward=None, before=1, after=1).high == (
        axis.high
    )


@pytest.mark.parametrize(("pairing", "reds"), [("right", 0), ("wrong", 5), ("missing", 6)])
def test_wrong_pairs_are_red_and_right_ones_are_not(
    paired: Paired, pairing: str, reds: int
) -> None:
    with slotscope.open(paired(pairing)) as trace:
        axis = whole(trace)
        pairs = queries.pairs(trace, axis, limit=100).to_pylist()
        boxes = pipeline_chart.bars(
            queries.computes(trace, axis, limit=100).to_pylist(), STAGES, []
        )
        moved, sent = pipeline_chart._ties(pairs, STAGES, boxes, axis.low)
    assert sum(line["wrong"] and not line["ghost"] for line in moved) == (
        reds if pairing == "wrong" else 0
    )
    points = pipeline_chart._points(pairs, STAGES)
    ends = [point for point in points if point["act"] in ("commit", "no commit")]
    assert sum(point["wrong"] for point in ends) == reds
    assert len(sent) == 6  # each result, from the last stage to the first


def test_the_page_names_both_sides_of_a_wrong_pair(paired: Paired, opened: Opener) -> None:
    test = opened(paired("wrong"), "pipeline")
    assert not test.exception
    page = said(test)
    assert "5 wrong" in page
    assert "Stage 0: the result of forward 3 (micro-batch 0)" in page
    assert "states of forward 4 (micro-batch 1)" in page
    assert len(charts_of(test)) == 2


def test_the_page_says_what_was_not_committed(paired: Paired, opened: Opener) -> None:
    page = said(opened(paired("missing"), "pipeline", axis="order"))
    assert "the result of forward 3 (micro-batch 0) moved no state" in page
    assert "6 rightly paired" in page


def test_a_clean_pipeline_has_nothing_wrong(paired: Paired, opened: Opener) -> None:
    test = opened(paired("right"), "pipeline")
    assert not test.exception
    page = said(test)
    assert "12 rightly paired" in page
    assert "wrong" not in page
    assert HOSTILE not in "".join(element.value for element in (*test.markdown, *test.caption))


def test_a_forward_of_a_link_is_told(paired: Paired, opened: Opener) -> None:
    test = opened(paired("wrong"), "pipeline", at="4", forward="4", pool="0")
    assert "Forward 4 on stage 0" in said(test)
    assert {"verify.plan", "scatter", "forward.launch"} <= set(table(test)["op"])


def test_a_trace_without_stages_teaches(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "pipeline")
    assert not test.exception
    assert "No micro-batches in this trace" in said(test)
