"""A report leaves as JSON, Markdown, JUnit and terminal text, and all four say the same."""

from __future__ import annotations

import json
from io import StringIO
from xml.etree import ElementTree

import pytest
from histories import connect
from rich.console import Console

from slotscope.instrument import check, detectors
from slotscope.instrument.report import Report

ALIASED = (
    "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192%64 V2 2:r7?5@255 /1 5!192n2%64 n2+5@192"
    " 2:3@255+2 2:5^256%64 /2"
)


@pytest.fixture(scope="module")
def report() -> Report:
    with connect(ALIASED, dead=["verify.plan"]) as con:
        con.execute("INSERT INTO notes VALUES (0, 'model', 'old', 1), (0, 'model', 'a|b', 2)")
        con.execute("UPDATE requests SET request_id = 'q[bold]<b>`|\x07\x1b[2J'")
        return check.run(con, [d for d in detectors.load() if d.id in ("D1", "D2", "D3", "D4")])


def shown(report: Report) -> str:
    console = Console(width=200, file=StringIO())
    console.print(report.rich())
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_json_holds_the_whole_report(report: Report) -> None:
    told = json.loads(report.to_json())
    assert told["verdict"] == "found"
    assert {v["detector"]: v["verdict"] for v in told["verdicts"]} == {
        "D1": "found", "D2": "clean", "D3": "clean", "D4": "blind",
    }  # fmt: skip
    (finding,) = told["findings"]
    assert finding["witness"] == [6, 13, 10]
    assert [event["op"] for event in finding["events"]] == ["scatter", "scatter", "donate"]
    assert [each["witness"] for each in finding["also"]] == [[6, 13, 11]]
    assert told["notes"] == {"0": {"model": "a|b"}}


def test_markdown_is_an_issue(report: Report) -> None:
    text = report.findings[0].markdown()
    for part in ("## D1 depth: slot 5", "### Witness", "| 0.13 | scatter |", "### Environment"):
        assert part in text
    assert "| model | a\\|b |" in text
    assert "WHERE (writer, seq) IN ((0, 6), (0, 13), (0, 10))" in text


def test_the_query_in_the_markdown_finds_the_witness(report: Report) -> None:
    with connect(ALIASED) as con:
        seen = con.execute(report.findings[0].sql).fetchall()
    assert len(seen) == 3


def test_ids_of_others_are_no_markup(report: Report) -> None:
    assert "q\\[bold\\]\\<b\\>\\`\\|" in report.findings[0].markdown()
    assert "\x07" not in report.findings[0].markdown()
    assert "q[bold]<b>" in shown(report)
    assert "\x07" not in shown(report)


def test_junit_fails_what_was_found_and_errs_where_it_is_blind(report: Report) -> None:
    suite = ElementTree.fromstring(report.junit())
    assert suite.attrib["failures"] == "1"
    assert suite.attrib["errors"] == "1"
    (failure,) = suite.iter("failure")
    assert "192" in str(failure.text)
    (error,) = suite.iter("error")
    assert "verify.plan" in error.attrib["message"]


def test_the_terminal_shows_each_verdict(report: Report) -> None:
    text = shown(report)
    assert "D4 commit" in text
    assert "blind" in text
    assert "0.6, 0.13, 0.10" in text
    assert "\x1b" not in text
    assert r"\x1b[2J" in text
