from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from slotscope.dashboard.page import slots, sql
from slotscope.instrument import probe
from slotscope.instrument.detectors import load
from slotscope.instrument.event import Op, Role
from tests.dashboard.conftest import HOSTILE

Opener = Callable[..., AppTest]


def script(directory: str, page: str) -> None:
    from slotscope.dashboard import app

    app.main(directory, page=page)


@pytest.fixture
def opened() -> Opener:
    """Opens a page of the dashboard on a trace, with the query of a link."""

    def opener(directory: Path, page: str, **query: str) -> AppTest:
        test = AppTest.from_function(script, args=(str(directory), page), default_timeout=60)
        for name, value in query.items():
            test.query_params[name] = value
        return test.run()

    return opener


def said(test: AppTest) -> str:
    """All text of the page, whatever element carries it."""
    kinds = (test.text, test.markdown, test.caption, test.subheader, test.code, test.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def table(test: AppTest) -> Any:
    """The page's own table. The first is that of the settings, in the header."""
    return test.dataframe[1].value


def charts_of(test: AppTest) -> list[Any]:
    return list(test.get("vega_lite_chart"))


def test_the_findings_page_argues(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "findings")
    assert not test.exception
    page = said(test)
    assert "D1 depth: slot 6" in page
    assert "192" in page
    assert "256" in page
    assert "contradiction" in page
    assert "prefill-donation-guard" in page
    assert len(charts_of(test)) == 1


def test_the_board_has_a_tile_for_each_detector(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "findings")
    tiles = [m.value for m in test.markdown if m.value.startswith(("**D", "**P"))]
    assert [tile.split("**")[1] for tile in tiles] == [each.id for each in load()]
    badges = [m.value for m in test.markdown if "-badge[" in m.value]
    assert sum("found" in badge for badge in badges) == 1
    assert sum("clean" in badge for badge in badges) == len(load()) - 1


def test_a_finding_is_ready_to_be_an_issue(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "findings")
    (issue,) = [c.value for c in test.code]
    assert issue.startswith("#")
    assert "SELECT" in issue
    assert "prefill-donation-guard" in issue


def test_a_clean_trace_says_that_all_detectors_looked(clean: Path, opened: Opener) -> None:
    test = opened(clean, "findings")
    assert not test.exception
    assert "Every detector looked, and found nothing" in said(test)


def test_a_trace_without_hooks_is_blind_not_clean(tmp_path: Path, opened: Opener) -> None:
    probe.start(tmp_path / "trace", collector=False)
    probe.emit(Op.ALLOCATE, slots=[1], request=probe.request("r"), role=Role.LIVE)
    probe.stop()
    page = said(opened(tmp_path / "trace", "findings"))
    assert "blind is not clean" in page
    assert "Every detector looked" not in page


EMPTY = ("findings", "slots", "pipeline", "tree", "request", "capacity")


@pytest.mark.parametrize("page", EMPTY)
def test_a_trace_without_events_teaches(tmp_path: Path, opened: Opener, page: str) -> None:
    probe.start(tmp_path / "trace", collector=False)
    probe.note("engine", "slotscope")
    probe.stop()
    test = opened(tmp_path / "trace", page)
    assert not test.exception
    assert "No slot events yet" in said(test)


def test_the_slots_page_draws_lines_and_the_history_of_the_slot_in_the_link(
    aliased: Path, opened: Opener
) -> None:
    test = opened(aliased, "slots", slot="6")
    assert not test.exception
    assert len(charts_of(test)) == 2
    assert "History of slot 6" in said(test)
    ops = table(test)["op"].tolist()
    assert ops[0] == "allocate"
    assert ops.count("scatter") == 2


def test_filters_of_a_link_are_applied(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "slots", slot="6", op="donate", axis="order", request="chat-0003")
    assert not test.exception
    assert test.selectbox(key="request").value == "chat-0003"
    assert table(test)["op"].tolist() == ["donate"]


def test_a_window_of_a_link_cuts_the_history(aliased: Path, opened: Opener) -> None:
    query = {"slot": "6", "axis": "order", "from": "0", "until": "70"}
    near = table(opened(aliased, "slots", **query))
    far = table(opened(aliased, "slots", slot="6", axis="order"))
    assert 0 < len(near) < len(far)


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("findings", {"finding": "D1-zz", "process": "twelve"}),
        ("slots", {"slot": "six", "from": "nan", "until": "inf", "axis": "sideways"}),
        ("slots", {"slot": "99999", "from": "9", "until": "1", "request": "nobody"}),
        ("tree", {"node": "three", "nodes": "some"}),
        ("request", {"axis": "sideways", "from": "9", "until": "1"}),
        ("capacity", {"pool": "x", "from": "nan"}),
        ("slots", {"process": "12", "slots": "a-b, 3-, 6", "role": "king", "op": "dance"}),
    ],
)
def test_a_broken_link_shows_what_it_can(
    aliased: Path, opened: Opener, page: str, query: dict[str, str]
) -> None:
    test = opened(aliased, page, **query)
    assert not test.exception
    assert charts_of(test)


def test_a_link_to_another_trace_is_not_answered_from_this_one(
    aliased: Path, opened: Opener
) -> None:
    test = opened(aliased, "findings", trace="elsewhere")
    page = said(test)
    assert "made for another trace" in page
    assert "contradiction" not in page
    assert "contradiction" in said(test.button[0].click().run())


def test_a_filter_that_nothing_fits_teaches(aliased: Path, opened: Opener) -> None:
    assert "No slot fits the filters" in said(opened(aliased, "slots", slots="4000"))


def test_sql_answers_the_query_of_the_link(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "sql", q="SELECT op, count(*) AS n FROM events GROUP BY op")
    assert not test.exception
    assert "allocate" in table(test)["op"].tolist()


def test_every_example_runs(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "sql")
    for name, query in sql.EXAMPLES.items():
        test.selectbox(key="example").select(name).run()
        assert test.text_area(key="q").value == query
        assert not test.error, name
        assert "rows in" in said(test)


REFUSED = (
    "SELEC 1",
    "SELECT * FROM nowhere",
    "COPY events TO '/tmp/out.csv'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "ATTACH '/tmp/x.db'",
    "SELECT 1; SELECT 2",
)


def test_a_refused_query_is_told_and_the_page_lives(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "sql")
    for query in REFUSED:
        test.text_area(key="q").set_value(query)
        test.button[0].click().run()
        assert not test.exception, query
        assert [error.value for error in test.error] == ["The query was refused."], query
        assert test.code[0].value
    test.text_area(key="q").set_value("SELECT 1 AS one")
    test.button[0].click().run()
    assert table(test)["one"].tolist() == [1]


def test_equal_column_names_and_lists_can_be_shown_and_downloaded(
    aliased: Path, opened: Opener
) -> None:
    test = opened(aliased, "sql", q="SELECT slot, slot, [slot, 1] AS pair FROM events")
    assert not test.exception
    assert table(test).columns.tolist() == ["slot", "slot_2", "pair"]


def test_names_of_requests_never_pass_through_markdown(aliased: Path, opened: Opener) -> None:
    for page in ("findings", "slots"):
        test = opened(aliased, page, slot="6")
        for element in (*test.markdown, *test.caption, *test.subheader):
            assert HOSTILE not in element.value
        assert not test.get("html") or all(HOSTILE not in str(h) for h in test.get("html"))


@pytest.mark.parametrize(
    ("text", "slots_named"),
    [("", ()), ("3", (3,)), ("3, 7-9", (3, 7, 8, 9)), ("x, 4", (4,)), ("9-7", ())],
)
def test_a_list_of_slots_is_read(text: str, slots_named: tuple[int, ...]) -> None:
    assert slots._slots_of(text) == slots_named
