"""The event and its documentation say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slotscope.instrument.event import ENUMS, Event, Op, columns, op_name

DOCS = Path(__file__).parents[2] / "docs" / "events.md"


@pytest.mark.parametrize("op", Op, ids=op_name)
def test_each_op_is_told_in_the_docs(op: Op) -> None:
    spelled = op_name(op)
    group, _, name = spelled.rpartition(".")
    # `relay.send`, `.receive` share a row.
    pattern = rf"`{re.escape(spelled)}`" if name != "receive" else rf"`{group}\.send`, `\.receive`"
    assert re.search(pattern, DOCS.read_text())


def test_the_docs_name_no_column_that_does_not_exist() -> None:
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    names = {name for name, _, _ in columns()}
    told = {word for row in rows for word in re.findall(r"\b[a-z]+_[a-z_]+\b", row[3])}
    assert told - names == set()


def test_an_event_has_the_columns_in_their_order_and_no_more() -> None:
    assert [name for name, _, _ in columns()] == list(Event.__dataclass_fields__)
    assert set(ENUMS) < set(Event.__dataclass_fields__)


def test_codes_fit_their_column_and_leave_zero_for_null() -> None:
    for codes in ENUMS.values():
        assert all(0 < code < 60 for code in codes)
