"""The view `relays`: whose states the result of each verify moved, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest

from slotscope.instrument import schema
from tests import histories


def staged(*acts: str) -> list[tuple[Any, ...]]:
    """(forward, pairing, commit_forward) of two verifies: 1 of micro-batch 0, 2 of micro-batch 1,
    of r7 in slot 3 and r8 in slot 4, on one stage that is said in `acts`."""
    told = " ".join(["r7+ r8+ r7+live3 r8+live4 V1 V2", PLANS, *acts])
    with histories.connect(told) as con:
        con.execute("UPDATE events SET micro_batch = forward - 1 WHERE micro_batch IS NULL")
        con.execute(schema.statements("views")["relays"])
        return con.execute(
            "SELECT forward, pairing, commit_forward FROM relays ORDER BY forward"
        ).fetchall()


PLANS = (
    "verify.plan(forward=1,pool=0,request=7,row=1,src_row=1,kind=verify) "
    "verify.plan(forward=2,pool=0,request=8,row=2,src_row=2,kind=verify)"
)
FIRST = "relay.receive(forward=1,pool=0,request=7,accept_len=2)"
SECOND = "relay.receive(forward=2,pool=0,request=8,accept_len=2)"


def commit(forward: int, request: int, slot: int, *, result_of: int, row: int) -> str:
    return (
        f"scatter(forward={forward},micro_batch={result_of},role=live,request={request},"
        f"slot={slot},src_row={row},accept_len=2,kind=verify)"
    )


def test_a_result_that_moves_its_own_verify_is_right() -> None:
    acts = (FIRST, commit(1, 7, 3, result_of=0, row=1), "/1", SECOND,
            commit(2, 8, 4, result_of=1, row=2))  # fmt: skip
    assert staged(*acts) == [(1, "right", 1), (2, "right", 2)]


def test_a_result_that_moves_another_verify_is_wrong() -> None:
    acts = (FIRST, commit(2, 8, 4, result_of=0, row=2), "/1")
    assert staged(*acts) == [(1, "wrong", 2), (2, "open", None)]


def test_states_from_rows_of_others_are_told() -> None:
    acts = (FIRST, commit(1, 7, 3, result_of=0, row=2), "/1")
    assert staged(*acts)[0] == (1, "rows", 1)


@pytest.mark.parametrize(("ends", "pairing"), [("", "open"), ("/1", "missing")])
def test_a_result_that_moves_nothing_is_missing_once_it_was_read(ends: str, pairing: str) -> None:
    assert staged(FIRST, ends)[0] == (1, pairing, None)
