"""D6: a forward writes the slots of its requests and of its plan, padding and dummies nothing."""

from __future__ import annotations

from verdicts import checked, judge, witnesses

SEATED = "r7+ r7+live3 r7+keep5 r7+spare6 P1 1:3@0 1:3@0>250 1:5^192 /1 "  # 0 .. 8


def test_a_padded_row_writes_the_pad_slot_alone() -> None:
    row = "D2 2:3@250>251 advance(forward=2,slot={},pool=0,depth_before=0,depth=1) /2"
    assert witnesses("D6", SEATED + row.format(0), SEATED + row.format(3)) == [[], [[11]]]


def test_a_dummy_forward_writes_the_pad_slot_alone() -> None:
    dummy = SEATED + "X2 2:r7.{}@250>251 /2"
    assert witnesses("D6", dummy.format(0), dummy.format(3)) == [[], [[10]]]
    assert "be a dummy" in judge("D6", dummy.format(3)).because[0]


def test_a_verify_tracks_where_its_plan_says() -> None:
    verify = SEATED + "V2 2:r7?6@250 2:3@250+8 2:{}^256 /2 D3"
    assert witnesses("D6", verify.format(6), verify.format(5)) == [[], [[10, 12]]]
    untracked = SEATED + "V2 2:r7?@250 2:3@250+8 2:6^256 /2 D3"
    assert witnesses("D6", untracked) == [[[10, 12]]]
    assert "no slot" in judge("D6", untracked).because[0]


def test_a_track_slot_is_not_moved_as_the_live_state() -> None:
    assert judge("D6", SEATED + "D2 2:5@250>251 /2").witness == [[2, 10]]
    assert judge("D6", SEATED + "V2 2:r7?@250 2:5@250+1 /2 D3").witness == [[2, 11]]


def test_a_stray_write_explains_what_its_victim_meets() -> None:
    line = SEATED + "D2 advance(forward=2,slot=3,pool=0,depth_before=0,depth=1) /2 D3 3:3@250>251"
    (cause,) = checked(line).findings
    assert (cause.detector, {also.detector for also in cause.also}) == ("D6", {"D1"})


def test_it_is_clean_where_nothing_strays_and_blind_without_launches() -> None:
    line = SEATED + "D2 2:3@250>251 /2"
    assert judge("D6", line).verdict == "clean"
    assert judge("D6", line, dead=["forward.launch"]).verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    """The lost record may be the plan that gave the verify slot 5."""
    answer = judge("D6", SEATED + "V2 2:r7?6@250 ... 2:3@250+8 2:5^256 /2 D3")
    assert (answer.verdict, answer.witness) == ("blind", [])
