"""D1: a state is right at one depth only. Numbers in witnesses are places in the line."""

from __future__ import annotations

from verdicts import judge

SEATED = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192%64 "  # 0 .. 6
VERIFY = "V2 2:r7?5@255 "  # 7, 8


def test_a_verify_launched_before_the_donation_moves_the_donated_state() -> None:
    """The write is said last, but its launch precedes the donation."""
    answer = judge("D1", SEATED + VERIFY + "/1 5!192n2%64 /2 2:3@255+2 2:5^256%64")
    assert answer.witness == [[6, 13, 10]]
    (because,) = answer.because
    for fact in ("slot 5 (generation 1)", "forward 2", "q7", "192", "256", "node 2", "event 0.13"):
        assert fact in because


def test_a_suppressed_donation_repaired_later_is_clean() -> None:
    later = "/1 5!192%64x /2 2:3@255+2 2:5^256%64 r7~5=256 r7- 5!256n2%64 n2+5@256 -3"
    assert judge("D1", SEATED + VERIFY + later).verdict == "clean"


def test_a_verify_launched_after_the_donation_is_not_d1s() -> None:
    assert judge("D1", SEATED + "/1 5!192n2%64 V2 2:5^256%64").verdict == "clean"


def test_each_later_reader_of_the_state_is_told() -> None:
    reuse = "r9+ n2?5@192 r9+live4 P3 3:4<5@192n2"
    answer = judge("D1", SEATED + VERIFY + "/1 5!192n2 n2+5@192 /2 2:5^256 " + reuse)
    assert answer.witness == [[6, 13, 10], [6, 13, 11], [6, 13, 15], [6, 13, 18]]


def test_a_label_that_no_write_ever_left() -> None:
    answer = judge("D1", SEATED + "/1 5!128n2")
    assert answer.witness == [[6, 8]]
    assert "192" in answer.because[0]
    assert "128" in answer.because[0]


def test_a_restore_that_believes_another_depth_than_its_source_has() -> None:
    filed = SEATED + "/1 5!192n2 n2+5@192 r9+ n2?5@192 r9+live4 P3 "
    assert judge("D1", filed + "3:4<5@192n2").verdict == "clean"
    assert judge("D1", filed + "3:4<5@128=192n2").witness == [[6, 14]]
    assert judge("D1", filed + "3:4<5@192=128n2").witness == [[6, 14]]


def test_a_copy_has_the_depth_of_what_it_copies() -> None:
    step = SEATED + "/1 r7+spare6 D2 2:3@255>256 "
    assert judge("D1", step + "2:6=3@256%64").verdict == "clean"
    assert judge("D1", step + "2:6=3@192%64").witness == [[10, 11]]


def test_an_act_begins_at_the_depth_that_the_state_has() -> None:
    assert judge("D1", SEATED + "/1 D2 2:3@255>256").verdict == "clean"
    assert judge("D1", SEATED + "/1 D2 2:3@256>257").witness == [[5, 9]]
    assert judge("D1", SEATED + "/1 V2 2:r7?@255 2:3@250+2 /2").witness == [[5, 10]]


def test_a_donation_that_names_no_node_is_argued_too() -> None:
    answer = judge("D1", SEATED + "V2 2:r7?5@255 /1 5!192 2:3@255+2 2:5^256 /2")
    assert "gave it to the tree" in answer.because[0]


def test_no_write_moves_a_lease_back() -> None:
    assert judge("D1", SEATED + "/1 P2 2:5^256%64").verdict == "clean"
    assert judge("D1", SEATED + "/1 P2 2:5^128%64").witness == [[6, 9]]
    again = SEATED + "/1 P2 2:3@0"  # a second clear is D7's alone
    assert (judge("D1", again).witness, judge("D7", again).witness) == ([], [[5, 9]])


def test_a_new_lease_may_begin_anywhere() -> None:
    assert judge("D1", SEATED + "/1 -5 r7+keep5 P2 2:5^128%64").verdict == "clean"


def test_depths_and_labels_lie_on_the_grid_that_is_named() -> None:
    assert judge("D1", "r7+ r7+keep5 P1 1:5^192%64").verdict == "clean"
    assert judge("D1", "r7+ r7+keep5 P1 1:5^200%64").witness == [[3]]
    assert judge("D1", "r7+ r7+keep5 P1 1:5^192 5!192n2%128").witness == [[4]]


def test_acts_said_late_stand_at_their_launch() -> None:
    """Overlap: both verifies are launched before either result is read."""
    line = SEATED + "/1 V2 2:r7?@255 V3 3:r7?@255 /2 2:3@255+2 /3 3:3@257+1 D4 4:3@258>259"
    assert judge("D1", line).verdict == "clean"


def test_it_is_blind_where_a_write_tells_no_depth() -> None:
    line = "r7+ r7+live3 P1 advance(slot=3,request=7,forward=1)"
    answer = judge("D1", line)
    assert answer.verdict == "blind"
    assert "1 advance event" in answer.why


def test_it_is_blind_without_the_ops_that_it_needs() -> None:
    answer = judge("D1", SEATED, dead=["scatter", "lock"])
    assert answer.verdict == "blind"
    assert "scatter" in answer.why
    assert "lock" not in answer.why


def test_it_argues_nothing_across_lost_records() -> None:
    """The lost record may be the write that makes the label right."""
    answer = judge("D1", SEATED + "... /1 5!256n2 n2+5@256")
    assert answer.verdict == "blind"
    assert answer.witness == []


def test_inputs_in_a_replay_ring_count() -> None:
    moved = "r7+live3 P1 1:3@0 advance(slot=3,request=7,depth_before=0,depth=60,ring=4) 3!{}"
    answers = [judge("D1", f"r7+ {moved.format(label)}") for label in (64, 60)]
    assert [answer.verdict for answer in answers] == ["clean", "found"]
