from __future__ import annotations

from typing import Any

from slotscope.dashboard import picture


def told(turn: int, op: str, **columns: Any) -> dict[str, Any]:
    """A row as `queries.around` answers it."""
    blank = dict.fromkeys(
        ("kind", "role", "outcome", "slot", "request", "request_id", "forward", "label", "node")
    )
    return {**blank, "turn": turn, "op": op, "state_depth": None, "witness": False, **columns}


STORY = [
    told(1, "allocate", slot=6, request=2, request_id="r"),
    told(2, "forward.launch", forward=1, kind="prefill"),
    told(3, "forward.launch", forward=2, kind="verify"),
    told(4, "forward.done", forward=1),
    told(5, "donate", slot=6, request=2, request_id="r", node=3, label=192, state_depth=256),
    told(6, "insert", slot=6, request=2, request_id="r", node=3, label=256, state_depth=256),
]


def test_an_owner_lasts_until_the_next_one() -> None:
    stretches = [(s["name"], s["x"], s["x2"]) for s in picture.owners(STORY, 6)]
    assert stretches == [("r", 1, 5), ("tree node 3", 5, 6.5)]


def test_a_suppressed_donation_changes_no_owner() -> None:
    story = [STORY[0], told(2, "donate", slot=6, node=3, label=192, outcome="suppressed")]
    assert [s["name"] for s in picture.owners(story, 6)] == ["r"]
    assert picture.claims(story) == []


def test_flights_that_overlap_lie_on_different_lines() -> None:
    prefill, verify = picture.flights(STORY)
    assert (prefill["x"], prefill["x2"]) == (2, 4)
    assert (verify["x"], verify["x2"]) == (3, 6.5)  # its result is not in sight
    assert prefill["y"] != verify["y"]


def test_a_claim_is_wrong_where_the_state_has_another_depth() -> None:
    assert [(c["x"], c["wrong"]) for c in picture.claims(STORY)] == [(5, True), (6, False)]


def test_the_picture_is_a_valid_chart_with_one_label_per_turn() -> None:
    spec = picture.picture(STORY, 6).to_json()
    for name in ("allocate", "launch 1", "done 1", "donate", "insert"):
        assert f"'{name}'" in spec
