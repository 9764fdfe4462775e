"""D7: a lease begins once, before its state is read."""

from __future__ import annotations

from verdicts import checked, judge, witnesses

SEATED = "r7+ r7+live3 r7+keep5 "  # 0 .. 2
RESTORED = SEATED + "P1 1:3@0 1:3@0>128 1:5^64 /1 r7- 5!64n2 n2+5@64 -3 r9+ r9.n2?5@64 r9+live4 "


def test_a_slot_that_nobody_cleared() -> None:
    answer = judge("D7", SEATED + "P1 1:3@0>64")
    assert answer.witness == [[1, 4]]
    assert "last tenant" in answer.because[0]
    assert witnesses(
        "D7",
        SEATED + "P1 1:3@0 1:3@0>64",
        SEATED + "V1 1:r7?@64 1:3@64+1",  # a verify reads the state too
        SEATED + "P1 1:3@0 1:3@0>64 /1 -3 r8+ r8+live3 P2 2:3@0>64",  # the next tenant
    ) == [[], [[1, 5]], [[9, 11]]]


def test_a_plan_to_clear_or_restore_runs_once() -> None:
    launched = RESTORED + "P2 2:4<5@64n2 2:4@64>128 /2 "  # 15 .. 18
    assert witnesses(
        "D7",
        launched + "D3 3:4@128>129",
        launched + "V3 3:4<5@64n2",
        RESTORED + "P2 2:4<5@64n2 2:4@0 2:4@0>64",
        SEATED + "P1 1:3@0 1:3@0>64 /1 P2 2:3@0 2:3@64>128",
    ) == [[], [[17, 20]], [[16, 17]], [[5, 8]]]


def test_a_state_may_come_back_in_parts() -> None:
    part = " load_back(slot=6,pool=0,node=2,depth=64,label=64,component={})"
    whole = " load_back(slot=6,pool=0,node=2,depth=64,label=64)"
    assert witnesses("D7", "+node6" + part.format("conv") + part.format("ssm")) == [[]]
    assert witnesses("D7", "+node6" + whole + whole) == [[[1, 2]]]


def test_a_second_restore_explains_the_depths_that_follow() -> None:
    line = RESTORED + "P2 2:4<5@64n2 2:4@64>128 /2 D3 3:4<5@64n2 3:4@128>129 D4 4:4@129>130"
    (cause,) = checked(line).findings
    assert (cause.detector, {also.detector for also in cause.also}) == ("D7", {"D1"})


def test_it_is_clean_where_each_lease_begins_once_and_blind_without_clears() -> None:
    line = SEATED + "P1 1:3@0 1:3@0>64 /1"
    assert judge("D7", line).verdict == "clean"
    assert judge("D7", line, dead=["clear"]).verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    answer = judge("D7", SEATED + "P1 ... 1:3@0>64")
    assert (answer.verdict, answer.witness) == ("blind", [])
