"""Each example of docs/sql.md, on a trace of which the answer is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slotscope
from slotscope.instrument import probe, schema
from slotscope.instrument.event import Kind, Op, Role

PAGE = (Path(__file__).parents[2] / "docs/sql.md").read_text()
EXAMPLES = re.findall(r"```sql\n(.*?)\n```", PAGE, re.DOTALL)

ANSWERS = [
    [(5, 1, 1, 64, 64)],
    [
        ("allocate", "r1", None, None),
        ("clear", None, 0, None),
        ("advance", "r1", 64, None),
        ("donate", "r1", None, 64),
        ("restore", None, 64, 64),
    ],
    [(1, 1)],
    [(1, "prefill")],
    [(0, 6, 1, None, None), (1, 5, 1, "restore", 64)],
]


@pytest.fixture
def trace(traced: Path) -> Iterator[slotscope.Trace]:
    """Slot 5 is donated by request r1, and restored into slot 6."""
    request = probe.request("r1")
    probe.emit(Op.ALLOCATE, slots=[5], request=request, role=Role.LIVE)
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=1, kind=Kind.PREFILL)
    probe.emit(Op.CLEAR, slots=[5], depth=0, forward=1, launch=launch)
    probe.emit(Op.ADVANCE, slots=[5], depth=64, forward=1, launch=launch, request=request)
    probe.emit(Op.FORWARD_DONE, forward=1)
    probe.emit(Op.DONATE, slots=[5], label=64, node=7, request=request)
    probe.emit(Op.ALLOCATE, slots=[6], role=Role.LIVE)
    probe.emit(Op.RESTORE, slots=[6], src_slot=[5], node=7, depth=64, label=64)
    with slotscope.open(traced) as opened:
        yield opened


@pytest.mark.parametrize(("example", "answer"), list(zip(EXAMPLES, ANSWERS, strict=True)))
def test_the_examples_of_the_page(
    trace: slotscope.Trace, example: str, answer: list[tuple[object, ...]]
) -> None:
    assert [tuple(row.values()) for row in trace.sql(example).to_pylist()] == answer


def test_the_page_tells_every_view_and_macro() -> None:
    names = {*schema.statements("views"), *schema.statements("macros")}
    assert [name for name in sorted(names) if f"`{name}" not in PAGE] == []


def test_a_forward_that_was_read_is_not_in_flight(trace: slotscope.Trace) -> None:
    done = trace.sql("SELECT done_order AS n FROM forwards")["n"][0].as_py()
    assert trace.sql(f"FROM in_flight_at({done - 1})").num_rows == 1
    assert trace.sql(f"FROM in_flight_at({done})").num_rows == 0
