"""The page of a request, and what it asks."""

from __future__ import annotations

from pathlib import Path

from slotscope.dashboard import queries, request_chart
from slotscope.instrument.trace import Trace
from tests.dashboard.conftest import HOSTILE, whole
from tests.dashboard.test_pages import Opener, charts_of, opened, said, table

__all__ = ["opened"]


def test_steps_tell_how_the_state_got_its_depth(trace: Trace) -> None:
    rows = queries.steps(trace, whole(trace), "chat-0003", limit=100).to_pylist()
    assert [(row["op"], row["kind"], row["depth_before"], row["depth"]) for row in rows[:3]] == [
        ("clear", "prefill", 0, 0),
        ("advance", "prefill", 0, 255),
        ("scatter", "verify", 255, 258),
    ]
    assert rows[2]["accept_len"] == 3


def test_a_claim_is_judged_by_what_takes_effect_before(trace: Trace) -> None:
    rows = queries.claims(trace, whole(trace), "chat-0003", limit=100).to_pylist()
    claims = {row["op"]: row for row in request_chart.judged(rows)}
    assert (claims["donate"]["label"], claims["donate"]["state_depth"]) == (192, 256)
    assert claims["donate"]["wrong"]
    tracks = [(row["depth"], row["role"]) for row in rows if not row["claim"]]
    assert tracks == [(192, "keep"), (256, "keep")]


def test_without_the_bug_no_claim_is_wrong(spared: Trace) -> None:
    rows = queries.claims(spared, whole(spared), "chat-0003", limit=100).to_pylist()
    claims = request_chart.judged(rows)
    assert len(claims) >= 5
    assert not any(row["wrong"] for row in claims)


def test_passed_depths_of_the_grid_are_saved_or_not() -> None:
    step = {"op": "scatter", "x": 1.0, "depth_before": 60, "depth": 130}
    passed = request_chart.crossings([step], 64, {128})
    assert [(row["depth"], row["saved"]) for row in passed] == [(64, False), (128, True)]
    assert request_chart.crossings([step], None, set()) == []


def test_a_request_with_an_odd_name_is_shown_as_it_is(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "request", request=HOSTILE)
    assert not test.exception
    assert HOSTILE in [text.value for text in test.text]
    assert HOSTILE not in "".join(element.value for element in (*test.markdown, *test.caption))
    assert len(charts_of(test)) == 2  # the strip and the depths: it had no verify
    assert "restore" in set(table(test)["op"])


def test_the_page_begins_with_a_request_that_something_is_wrong_with(
    aliased: Path, opened: Opener
) -> None:
    test = opened(aliased, "request", axis="order")
    assert not test.exception
    assert "chat-0003" in [text.value for text in test.text]
    assert len(charts_of(test)) == 3


def test_an_unknown_request_teaches(clean: Path, opened: Opener) -> None:
    test = opened(clean, "request", request="nobody")
    assert not test.exception
    assert "No such request" in said(test)
