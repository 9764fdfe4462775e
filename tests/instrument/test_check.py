"""A check has three answers, and an exit code for each."""

from __future__ import annotations

import duckdb
import pytest
from histories import connect, lose
from verdicts import checked

from slotscope.instrument import check, detectors
from slotscope.instrument.fold import FoldError

ORDER = [each.id for each in detectors.load()].index


def needing(op: str) -> set[str]:
    """The detectors that need an op."""
    return {each.id for each in detectors.load() if op in each.needs}


SERVED = "r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 r7- -3"


def test_all_clean_is_0_found_is_1_blind_is_2() -> None:
    assert checked(SERVED).exit_code == 0
    assert checked(SERVED + " -3").exit_code == 1
    assert checked(SERVED, dead=["verify.plan"]).exit_code == 2
    assert checked(SERVED + " -3", dead=["verify.plan"]).exit_code == 1


def test_a_dead_hook_beside_a_live_one_in_another_process_is_told() -> None:
    with connect(SERVED + " | " + SERVED) as con:
        con.execute("UPDATE hooks SET live = false WHERE process = 1 AND op = 'free'")
        report = check.run(con)
    why = {v.detector: v.why for v in report.verdicts if v.verdict == "blind"}
    assert set(why) == needing("free")
    assert "process 1 has no live hook for free" in why["D10"]


def test_the_latest_word_on_a_hook_counts() -> None:
    with connect(SERVED, dead=["free"]) as con:
        con.execute("INSERT INTO hooks VALUES (0, 'engine', 'free', true, 99)")
        assert check.run(con).exit_code == 0


def test_lost_events_blind_only_the_detectors_that_need_them() -> None:
    with connect(SERVED) as con:
        lose(con, process=0, op="verify.plan", count=3, first_order=900, last_order=950)
        report = check.run(con)
    assert [v.detector for v in report.verdicts if v.verdict == "blind"] == sorted(
        needing("verify.plan"), key=ORDER
    )
    why = next(v.why for v in report.verdicts if v.detector == "D4")
    assert "process 0 lost 3 verify.plan events between orders 900 and 950" in why


WRITTEN_LATE = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192 /1 5!255n2 P9 /9"
"""The donate, event 8, is found by D1, unless records around it are lost."""


def answers_without(op: str) -> dict[str, str]:
    """Verdicts where an op or a fact was lost just after the donate."""
    with connect(WRITTEN_LATE) as con:
        lose(con, process=0, op=op, first_order=9, last_order=12)
        report = check.run(con)
    return {v.detector: v.verdict for v in report.verdicts}


@pytest.mark.parametrize("op", ["swap", "match", "allocate", "donate", "relay.send", "offload"])
def test_a_loss_that_hides_a_stretch_blinds_every_detector(op: str) -> None:
    assert set(answers_without(op).values()) == {"blind"}


def test_a_lost_fact_about_a_hook_blinds_all_and_hides_nothing() -> None:
    told = answers_without("hook")
    assert told.pop("D1") == "found"
    assert set(told.values()) == {"blind"}


@pytest.mark.parametrize("op", ["lock", "split", "request.begin", "request", "note"])
def test_a_loss_that_changes_nothing_hides_nothing(op: str) -> None:
    told = answers_without(op)
    assert told.pop("D1") == "found"
    blind = {detector for detector, verdict in told.items() if verdict == "blind"}
    assert blind == needing(op)
    assert set(told.values()) <= {"clean", "blind"}


def test_what_one_process_reports_says_nothing_of_another_ones_slots() -> None:
    with connect(SERVED + " | " + SERVED) as con:
        con.execute("DELETE FROM hooks WHERE process = 1 AND op = 'free'")
        report = check.run(con)
    why = {v.detector: v.why for v in report.verdicts if v.verdict == "blind"}
    assert set(why) == needing("free")
    assert "process 1 has no live hook for free" in why["D10"]


def test_a_process_without_slots_need_report_nothing() -> None:
    with connect(SERVED + " | r8+ r8-") as con:
        con.execute("DELETE FROM hooks WHERE process = 1")
        assert check.run(con).exit_code == 0


def test_damaged_bytes_hide_a_whole_process_and_no_other() -> None:
    twice = SERVED + " -3"
    with connect(f"{twice} | {twice}") as con:
        lose(con, process=0, reason="damaged", count=0)
        report = check.run(con)
    assert [finding.process for finding in report.findings] == [1]
    assert all(v.blind_spots for v in report.verdicts)


def test_an_amendment_completes_its_event() -> None:
    amended = "r7+ r7+live3 P1 1:3@0 advance(slot=3,request=7,forward=1,depth_before=0)"
    assert checked(amended).exit_code == 2
    assert checked(amended + " amend(amends=4,depth=64) D2 2:3@64>65").exit_code == 0
    found = checked(amended + " amend(amends=4,depth=64) D2 2:3@60>61")
    assert [finding.witness for finding in found.findings] == [(4, 7)]


def test_findings_are_capped_but_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "FINDINGS_MAX", 2)
    report = checked(SERVED + " -3" * 5)
    (verdict,) = (v for v in report.verdicts if v.verdict == "found")
    assert verdict.found == 5
    assert verdict.why == "5 contradictions. The first 2 are shown."
    assert sum(1 + len(finding.also) for finding in report.findings) == 2


def test_chosen_detectors_alone_are_asked() -> None:
    with connect(SERVED + " -3") as con:
        report = check.run(con, [d for d in detectors.load() if d.id == "D1"])
    assert [v.detector for v in report.verdicts] == ["D1"]
    assert report.exit_code == 0


def test_a_connection_without_a_trace_is_an_error_that_names_the_file() -> None:
    with duckdb.connect() as con, pytest.raises(FoldError, match=r"fold/\w+\.sql failed"):
        check.run(con)
