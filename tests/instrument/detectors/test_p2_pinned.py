"""P2: a request pins no more slots than its strategy plans."""

from __future__ import annotations

from histories import connect
from verdicts import judge, witnesses

from slotscope.instrument import check, detectors

FOUR = "r7+ r7+live1 r7+keep2 r7+spare3 r7+keep4 "  # 0 .. 4


def test_slots_that_pile_up_at_a_request() -> None:
    assert witnesses(
        "P2",
        FOUR + "r7+keep5 r7-2 r7+keep6",
        FOUR + "r7+keep5 r7+keep6",
        FOUR + "r7+keep5 2!64n2 n2+2@64 r7+keep6",  # one is the tree's by now
    ) == [[], [[6]], []]


def test_a_process_may_say_what_its_strategy_plans() -> None:
    with connect(FOUR + "r7+keep5") as con:
        con.execute("INSERT INTO notes VALUES (0, 'engine.slots_per_request', '2', 0)")
        report = check.run(con, [d for d in detectors.load() if d.id == "P2"])
    assert [list(finding.witness) for finding in report.findings] == [[5]]


def test_it_is_clean_within_the_plan_and_blind_without_frees() -> None:
    assert judge("P2", FOUR).verdict == "clean"
    assert judge("P2", FOUR, dead=["free"]).verdict == "blind"
    answer = judge("P2", FOUR + "r7+keep5 ... r7+keep6")  # a free may be what was lost
    assert (answer.verdict, answer.witness) == ("blind", [])
