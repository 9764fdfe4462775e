"""D3: only the owner of a lease writes it or reads it."""

from __future__ import annotations

from verdicts import judge

SEATED = "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192%64 /1 "  # 0 .. 7


def test_a_write_launched_after_the_donation() -> None:
    answer = judge("D3", SEATED + "5!192n2 V2 2:5^256%64")
    assert answer.witness == [[8, 10]]
    assert "node 2" in answer.because[0]
    assert "forward 2" in answer.because[0]


def test_a_write_launched_before_the_donation_is_not_d3s() -> None:
    """Stream order puts it first; what it did to the depth is D1's."""
    assert judge("D3", SEATED + "V2 5!192n2 2:5^256%64").verdict == "clean"


def test_a_suppressed_donation_gives_nothing_away() -> None:
    assert judge("D3", SEATED + "5!192x V2 2:5^256%64").verdict == "clean"


def test_a_write_of_another_request() -> None:
    answer = judge("D3", SEATED + "r9+ D2 2:r9.3@255>256")
    assert answer.witness == [[1, 10]]
    assert "two requests share one state" in answer.because[0]


def test_a_write_of_the_old_tenant_that_is_launched_after_the_slot_was_reused() -> None:
    line = SEATED + "r7- -3 -5 r9+ r9+live3 P2 2:3@0 2:3@0>64 D3 3:r7.3@64>65"
    assert judge("D3", line).witness == [[12, 17]]


def test_a_forward_launched_before_the_free_may_still_name_the_slot() -> None:
    """Overlap finish: forward 2 is superfluous, and said after the slot has its next tenant."""
    line = SEATED + "D2 r7- -3 -5 r9+ r9+live3 P3 3:3@0 3:3@0>64 2:r7.3@255>256 /2 /3"
    assert judge("D3", line).verdict == "clean"


def test_a_restore_from_a_slot_that_a_request_holds() -> None:
    line = SEATED + "r9+ r9+live4 P2 2:4<5@192n2"
    assert judge("D3", line).witness == [[2, 11]]


def test_a_restore_from_the_tree() -> None:
    line = SEATED + "5!192n2 n2+5@192 r9+ n2?5@192 r9+live4 P2 2:4<5@192n2"
    assert judge("D3", line).verdict == "clean"


def test_a_copy_of_another_requests_state() -> None:
    line = SEATED + "r9+ r9+keep6 :r9.6=3@255"
    assert judge("D3", line).witness == [[1, 10]]


def test_two_streams_are_ordered_by_the_first_ones_done() -> None:
    open_flight = SEATED + "D2 2:3@255>256 D3s1 3:3@256>257"
    assert judge("D3", open_flight).witness == [[9, 11]]
    awaited = SEATED + "D2 2:3@255>256 /2 D3s1 3:3@256>257"
    assert judge("D3", awaited).verdict == "clean"


def test_it_is_blind_where_the_end_of_leases_is_not_reported() -> None:
    assert judge("D3", SEATED, dead=["free"]).verdict == "blind"


def test_it_argues_nothing_across_lost_records() -> None:
    """The lost record may be the free and the allocate that made request 9 the owner."""
    answer = judge("D3", SEATED + "... r9+ D2 2:r9.3@255>256")
    assert (answer.verdict, answer.witness) == ("blind", [])
