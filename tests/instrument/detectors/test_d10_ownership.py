"""D10: every slot has exactly one owner at every step."""

from __future__ import annotations

import pytest
from verdicts import judge

SEATED = "r7+ r7+live3 P1 1:3@0 1:3@0>64 /1 "  # 0 .. 5


def test_a_slot_that_goes_to_two_requests() -> None:
    answer = judge("D10", "r7+ r7+live3 r9+ r9+live3")
    assert answer.witness == [[1, 3]]
    assert "q7" in answer.because[0]
    assert "q9" in answer.because[0]


def test_a_slot_of_the_tree_that_goes_to_a_request() -> None:
    answer = judge("D10", SEATED + "3!64n2 r9+ r9+live3")
    assert answer.witness == [[6, 8]]
    assert "node 2" in answer.because[0]


def test_a_slot_may_go_to_the_next_once_it_is_free() -> None:
    assert judge("D10", "r7+ r7+live3 r7- r7-3 r9+ r9+live3").verdict == "clean"


def test_a_slot_for_a_request_that_never_begins() -> None:
    taken = SEATED + "r9+live4 D2 2:3@64>65 /2"
    answer = judge("D10", taken)
    assert answer.witness == [[6, 7]]
    assert "the request never began" in answer.because[0]
    assert judge("D10", SEATED + "r9+live4 D2 2:3@64>65 /2 r9+").verdict == "clean"
    assert judge("D10", SEATED + "r9+live4 r9-4 D2 2:3@64>65 /2").verdict == "clean"
    assert judge("D10", SEATED + "r9+live4 D2").verdict == "clean", "it may begin yet"
    assert judge("D10", SEATED + "... r9+live4 D2 2:3@64>65 /2").witness == []


def test_a_slot_that_is_freed_twice() -> None:
    assert judge("D10", "r7+ r7+live3 -3 -3").witness == [[2, 3]]


def test_a_slot_that_was_never_allocated() -> None:
    answer = judge("D10", "r7+ -3")
    assert answer.witness == [[1]]
    assert "since the trace began" in answer.because[0]


@pytest.mark.parametrize("slot", [0, -1])
def test_the_pad_slot_is_nobodys(slot: int) -> None:
    assert judge("D10", f"r7+ r7+live{slot}").witness == [[1]]
    assert judge("D10", f"r7+ -{slot}" if slot == 0 else "r7+ --1").witness == [[1]]


def test_padding_may_write_the_pad_slot() -> None:
    assert judge("D10", SEATED + "D2 2:0@0>1 2:0@0>1").verdict == "clean"


def test_a_failed_allocation_takes_nothing() -> None:
    assert judge("D10", SEATED + "r7+spare? r7+spare?").verdict == "clean"


@pytest.mark.parametrize(
    ("act", "at"),
    [
        ("D2 2:r7.3@64>65", 8),
        ("3!64n2", 7),
        ("n2?3@64", 7),
        ("r9+ r9+live4 P2 2:4<3@64n2", 10),
        ("r7~3=64", 7),
    ],
)
def test_an_act_on_a_free_slot(act: str, at: int) -> None:
    assert judge("D10", SEATED + "-3 " + act).witness == [[6, at]]


def test_an_act_launched_before_the_free() -> None:
    """Overlap finish, and a hit whose node is evicted once the restore is launched."""
    assert judge("D10", SEATED + "D2 r7- -3 2:r7.3@64>65 /2").verdict == "clean"
    line = SEATED + "3!64n2 n2+3@64 r9+ n2?3@64 r9+live4 P2 n2-3 -3 2:4<3@64n2 /2"
    assert judge("D10", line).verdict == "clean"


def test_a_slot_for_a_request_that_has_ended() -> None:
    assert judge("D10", "r7+ r7- r7+live3").witness == [[1, 2]]


def test_a_slot_that_an_ended_request_leaves_behind() -> None:
    answer = judge("D10", SEATED + "r7- D2 /2")
    assert answer.witness == [[1, 6, 7]]
    assert judge("D10", SEATED + "r7- -3 D2 /2").verdict == "clean"
    assert judge("D10", SEATED + "r7- 3!64n2 n2+3@64 D2 /2").verdict == "clean"


def test_a_retraction_ends_an_attempt_as_an_end_does() -> None:
    gone = SEATED + "retract(request=7,depth=64) "
    assert judge("D10", gone + "D2 /2").witness == [[1, 6, 7]]
    assert judge("D10", gone + "-3 D2 /2").verdict == "clean"
    assert judge("D10", gone + "-3 r7+live3").witness == [[6, 8]]


def test_a_free_may_wait_until_no_open_forward_names_the_slot() -> None:
    """Forward 2 was launched before the end, and 4 is the first launched after 2 was read."""
    line = SEATED + "D2 2:3@64>65 r7- D3 /2 {} D4 /3 {} D5"
    assert judge("D10", line.format("-3", "")).verdict == "clean"
    assert judge("D10", line.format("", "-3")).witness == [[1, 8, 11]]


def test_a_trace_that_ends_before_the_free_is_not_judged() -> None:
    assert judge("D10", SEATED + "r7-").verdict == "clean"
    assert judge("D10", SEATED + "D2 r7- D3").verdict == "clean"


def test_a_slot_that_an_evicted_node_leaves_behind() -> None:
    filed = SEATED + "3!64n2 n2+3@64 r7- n2-3 "  # 6 .. 9
    assert judge("D10", filed + "-3 D2 /2").verdict == "clean"
    answer = judge("D10", filed + "D2 /2")
    assert answer.witness == [[9, 10]]


def test_it_is_blind_where_frees_are_not_reported() -> None:
    assert judge("D10", "r7+ r7+live3", dead=["free"]).verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    answer = judge("D10", "r7+ r7+live3 ... r9+ r9+live3")
    assert (answer.verdict, answer.witness) == ("blind", [])


def test_each_process_has_its_own_slots() -> None:
    assert judge("D10", "r7+ r7+live3 | r7+ r7+live3").verdict == "clean"
    second = 1 << 40
    answer = judge("D10", "r7+ r7+live3 | r7+ r7+live3 r9+ r9+live3")
    assert answer.witness == [[second + 1, second + 3]]
