"""Slots whose numbers come late: their lives are numbered by what the amends say."""

from __future__ import annotations

from pathlib import Path

import pytest

import slotscope
from slotscope.instrument import fold, probe
from slotscope.instrument.event import Op, Role


def allocate(number: int | None, request: int) -> int:
    seq = probe.next_seq()
    probe.emit(Op.ALLOCATE, slots=[number], request=request, role=Role.LIVE)
    return seq


def free(number: int | None) -> int:
    seq = probe.next_seq()
    probe.emit(Op.FREE, slots=[number])
    return seq


@pytest.mark.parametrize("late", [False, True])
def test_a_slot_has_the_same_lives_whenever_its_number_is_known(traced: Path, late: bool) -> None:
    told = None if late else 4
    seqs = [allocate(told, 1), free(told), allocate(told, 2)]
    probe.emit(Op.ADVANCE, slots=[4], request=2, depth=7)
    for seq in seqs if late else ():
        probe.emit(Op.AMEND, slots=4, amends=seq)
    with slotscope.open(traced) as trace:
        con = trace.connection
        fold.prepare(con)
        found = con.execute(
            "SELECT op, slot, generation FROM seen WHERE op <> 'amend' ORDER BY \"order\""
        ).fetchall()
    assert found == [("allocate", 4, 1), ("free", 4, 2), ("allocate", 4, 3), ("advance", 4, 3)]
