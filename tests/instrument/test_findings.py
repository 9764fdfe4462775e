"""Causes come first, and what follows from them is folded under them."""

from __future__ import annotations

from verdicts import checked

from slotscope.instrument import detectors
from slotscope.instrument.findings import Finding, ranked

ALIASED = (
    "r7+ r7+live3 r7+keep5 P1 1:3@0 1:3@0>255 1:5^192%64 V2 2:r7?5@255 /1 5!192n2%64 n2+5@192"
    " 2:3@255+2 2:5^256%64 /2 r9+ n2?5@192 r9+live4 P3 3:4<5@192n2"
)


def finding(detector: str, position: int, *, slot: int = 3, request: int | None = None) -> Finding:
    return Finding(
        detector=detector,
        name="any",
        severity="corruption",
        process=0,
        pool=0,
        slot=slot,
        generation=1,
        request=request,
        request_id=None,
        forward=None,
        position=position,
        time_ns=None,
        witness=(position,),
        because=f"{detector} at {position}",
    )


def folds(*found: Finding) -> dict[str, list[str]]:
    causes = ranked(found, detectors.load())
    return {cause.because: [each.because for each in cause.also] for cause in causes}


def test_readers_of_a_wrong_state_are_folded_under_its_donation() -> None:
    (cause,) = checked(ALIASED).findings
    assert cause.witness == (6, 13, 10)
    assert [each.witness[-1] for each in cause.also] == [11, 16, 19]
    assert cause.title == "D1 depth: slot 5, request q7"


def test_an_earlier_finding_is_never_a_consequence() -> None:
    assert folds(finding("D1", 9), finding("D2", 4)) == {"D2 at 4": ["D1 at 9"]}
    assert folds(finding("D1", 4), finding("D3", 9)) == {"D1 at 4": [], "D3 at 9": []}


def test_another_lease_is_another_cause() -> None:
    assert folds(finding("D1", 4, slot=3), finding("D1", 9, slot=5)) == {
        "D1 at 4": [],
        "D1 at 9": [],
    }


def test_a_missing_commit_explains_what_its_request_does_elsewhere() -> None:
    told = folds(
        finding("D4", 4, slot=3, request=7),
        finding("D1", 8, slot=5, request=7),
        finding("D1", 9, slot=5, request=9),
        finding("D1", 10, slot=6, request=9),
    )
    assert told == {"D4 at 4": ["D1 at 8", "D1 at 9"], "D1 at 10": []}


def test_the_query_of_a_finding_names_its_witness() -> None:
    assert "(1, 7)" in finding("D1", (1 << 40) + 7).sql
