"""P1: a spare never costs a cached checkpoint."""

from __future__ import annotations

from verdicts import judge, witnesses

FULL = "r7+ r7+live3 r7+keep4 r9+keep5 5!64n2 n2+5@64 "  # 0 .. 5


def test_a_checkpoint_that_made_room_for_a_spare() -> None:
    assert witnesses(
        "P1",
        FULL + "r7+spare? n2-5 -5 r7+spare5",
        FULL + "r7+spare?",
        FULL + "r7+keep? n2-5 -5 r7+keep5",  # worth it: the keep stays
        FULL + "n2-5 -5 r7+spare5",  # room was made for something else
        FULL + "r7+spare? n2-5 -5 r9+live5",
    ) == [[[6, 7, 9]], [], [], [], []]


def test_it_is_clean_without_evictions_and_blind_where_they_are_not_told() -> None:
    assert judge("P1", FULL + "r7+spare?").verdict == "clean"
    assert judge("P1", FULL + "r7+spare?", dead=["evict"]).verdict == "blind"
