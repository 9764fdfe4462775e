"""Generations against a plain model: in one batch, in many, and with records that come late."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotscope.instrument import expand, generations, store
from slotscope.instrument.batch import Batch
from slotscope.instrument.event import Op, Outcome
from slotscope.instrument.expand import Events

Act = tuple[Op, int, int, int | None, bool]
"""op, slot, how far its launch lies back (0: a host act), src_slot, failed."""

acts = st.lists(
    st.tuples(
        st.sampled_from([Op.ALLOCATE, Op.FREE, Op.ADVANCE, Op.RESTORE]),
        st.integers(1, 3),
        st.integers(0, 6),
        st.one_of(st.none(), st.integers(1, 3)),
        st.integers(0, 9).map(lambda n: n == 0),
    ),
    max_size=60,
)


def model(history: list[Act]) -> list[tuple[int, int | None]]:
    """(generation, src_generation) of each act, which is said at its index + 1."""
    changes: dict[int, list[int]] = defaultdict(list)
    for order, (op, slot, _, _, failed) in enumerate(history, 1):
        if op in (Op.ALLOCATE, Op.FREE) and not failed:
            changes[slot].append(order)

    def lives(slot: int | None, position: int) -> int | None:
        return None if slot is None else sum(order <= position for order in changes[slot])

    found = []
    for order, (op, slot, back, source, _) in enumerate(history, 1):
        position = order if op in (Op.ALLOCATE, Op.FREE) or not back else max(order - back, 1)
        found.append((lives(slot, position) or 0, lives(source, position)))
    return found


def events(history: list[Act], first: int = 0) -> Events:
    """The history as columns, as they leave `expand`."""
    made = {name: column.copy() for name, column in expand.empty(len(history)).items()}
    made["process"][:] = made["pool"][:] = 0
    made["seq"][:] = made["order"][:] = np.arange(first, first + len(history)) + 1
    for i, (op, slot, back, source, failed) in enumerate(history):
        order = first + i + 1
        made["op"][i], made["slot"][i] = op, slot
        if source is not None:
            made["src_slot"][i] = source
        if failed:
            made["outcome"][i] = Outcome.FAILED
        host = op in (Op.ALLOCATE, Op.FREE) or not back
        made["position"][i] = order if host else max(order - back, 1)
    return made


def pairs(made: Events) -> list[tuple[int, int | None]]:
    absent = expand.null(np.dtype(np.int32))
    return [
        (g, None if s == absent else s)
        for g, s in zip(made["generation"].tolist(), made["src_generation"].tolist(), strict=True)
    ]


@given(acts)
def test_one_batch_equals_the_model(history: list[Act]) -> None:
    made = events(history)
    generations.Generations().assign(made)
    assert pairs(made) == model(history)


@given(acts, st.lists(st.integers(0, 60), max_size=4))
def test_batches_equal_the_model(history: list[Act], cuts: list[int]) -> None:
    numbers, found, at = generations.Generations(), [], 0
    for cut in [*sorted(min(c, len(history)) for c in cuts), len(history)]:
        made = events(history[at:cut], at)
        assert len(numbers.assign(made)) == 0
        found += pairs(made)
        at = cut
    assert found == model(history)


@settings(max_examples=20, deadline=None)
@given(acts, st.randoms(use_true_random=False), st.integers(1, 5))
def test_late_records_are_put_right_in_the_tables(
    history: list[Act], draw: Any, batches: int
) -> None:
    """Threads commit out of order, and a collector reads them in between."""
    made = events(history)
    places: list[list[int]] = [[] for _ in range(batches)]
    for i in range(len(history)):
        places[draw.randrange(batches)].append(i)
    with store.connect(":memory:") as con:
        store.create(con)
        tables = store.Tables(con)
        for rows in places:
            tables.append(Batch(events={name: column[rows] for name, column in made.items()}))
        found = con.execute("SELECT generation, src_generation FROM events ORDER BY seq").fetchall()
    assert found == model(history)


def test_changes_that_are_no_longer_carried_still_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generations, "CARRIED_ORDERS", 8)
    history: list[Act] = [
        (Op.ALLOCATE if i % 2 else Op.FREE, 1 + i // 2 % 3, 0, None, False) for i in range(300)
    ]
    numbers, found = generations.Generations(), []
    for at in range(0, 300, 10):
        made = events(history[at : at + 10], at)
        assert len(numbers.assign(made)) == 0
        found += pairs(made)
    assert found == model(history)
    assert len(numbers._changes) < 32
    late = events([(Op.ADVANCE, 1, 250, None, False)], 300)
    assert [generations.slot_of(k) for k in numbers.assign(late).tolist()] == [(0, 0, 1)]


def test_a_slot_of_an_impossible_pool_has_no_generation() -> None:
    made = events([(Op.ALLOCATE, 1, 0, None, False)])
    made["pool"][:] = 300
    generations.Generations().assign(made)
    assert made["generation"].tolist() == [expand.null(np.dtype(np.int32))]
