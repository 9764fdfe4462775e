"""D2: what is read was written, in this lease."""

from __future__ import annotations

import pytest
from verdicts import judge

SEATED = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 "  # 0 .. 5


@pytest.mark.parametrize(
    ("read", "at"),
    [
        ("/1 5!192n2", 7),
        ("/1 n2+5@192", 7),
        ("/1 n2?5@192", 7),
        ("/1 offload(slot=5,pool=0,depth=192,forward=1)", 7),
        ("r9+ r9+live4 P2 2:4<5@192n2", 9),
        ("/1 r7+spare6 :6=5@192", 8),
    ],
)
def test_a_read_of_a_lease_that_nobody_wrote(read: str, at: int) -> None:
    answer = judge("D2", SEATED + read)
    assert answer.witness == [[2, at]]
    assert "slot 5 (generation 1)" in answer.because[0]


def test_a_tracked_state_may_be_donated() -> None:
    assert judge("D2", SEATED + "1:5^192%64 /1 5!192n2 n2+5@192 n2?5@192").verdict == "clean"


def test_what_the_last_tenant_wrote_does_not_count() -> None:
    """A slot that is reused holds the bytes of its last tenant until somebody writes it."""
    line = SEATED + "1:5^192%64 /1 r7- -3 -5 r9+ r9+keep5 5!192n2"
    assert judge("D2", line).witness == [[12, 13]]


def test_a_write_said_late_counts_from_its_launch() -> None:
    assert judge("D2", SEATED + "5!192n2 1:5^192%64").verdict == "clean"
    assert judge("D2", SEATED + "5!192n2 P2 2:5^192%64").witness == [[2, 6]]


def test_a_donation_that_was_suppressed_reads_nothing() -> None:
    assert judge("D2", SEATED + "/1 5!192x r7- -3 -5").verdict == "clean"


def test_a_write_that_tells_no_depth_is_a_write() -> None:
    told = SEATED + "scatter(slot=5,request=7,forward=1,role=keep) /1 5!192n2"
    assert judge("D2", told).witness == []


def test_it_is_blind_where_writes_are_not_reported() -> None:
    answer = judge("D2", SEATED + "1:5^192 /1 5!192n2", dead=["copy"])
    assert answer.verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    answer = judge("D2", SEATED + "... /1 5!192n2")
    assert (answer.verdict, answer.witness) == ("blind", [])


def test_it_finds_again_after_lost_records() -> None:
    """A lease that began after the gap is known again."""
    answer = judge("D2", SEATED + "/1 D2 /2 ... D3 /3 D4 /4 r9+ r9+keep8 8!64n4")
    assert (answer.verdict, answer.witness) == ("found", [[15, 16]])
    assert "There may be more" in answer.why
