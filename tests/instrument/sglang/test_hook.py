"""A hook looks on: whatever it does, SGLang's call goes as it would without it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from sglang_objects import wrapped

import slotscope
from slotscope.instrument.event import Op
from slotscope.instrument.sglang.hook import Hook, Watch, When
from slotscope.instrument.sglang.plugin import announce
from slotscope.instrument.sglang.scene import Scene

HERE = "slotscope.instrument.probe"


def hook(emit: Callable[..., Any], when: When, at: str = f"{HERE}.emit", op: Op = Op.FREE) -> Hook:
    return Hook(at, when, emit, (op,), "something")


def live(trace: Path) -> dict[tuple[str, str], bool]:
    with slotscope.open(trace) as opened:
        query = "SELECT name, op, arg_max(live, time_ns) AS live FROM hooks GROUP BY ALL"
        rows = opened.sql(query).to_pylist()
    return {(row["name"].rpartition(".")[2], row["op"]): row["live"] for row in rows}


def half(number: int) -> float:
    return 12 / number


def looking(scene: Scene, *_: Any) -> Generator[None, Any, None]:
    yield
    raise ValueError("behind the call")


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_what_an_adapter_returns_changes_nothing(when: When) -> None:
    watched = hook(lambda *_: ((3,), {}), when)
    called = wrapped(half, Watch(Scene(), [watched]).wrap(watched), when)
    assert called(2) == 6


@pytest.mark.parametrize("when", list(When))
def test_what_an_adapter_raises_is_counted_and_reaches_nobody(when: When) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("before the call")

    watched = hook(looking if when is When.AROUND else broken, when)
    watch = Watch(Scene(), [watched])
    called = wrapped(half, watch.wrap(watched), when)
    assert [called(2), called(3)] == [6, 4]
    assert watch.failures == {watched.at: 2}


def test_what_the_call_raises_reaches_its_caller_and_ends_the_adapter() -> None:
    steps = []

    def looks(scene: Scene, number: int) -> Generator[None, Any, None]:
        try:
            yield
            steps.append("returned")
        finally:
            steps.append("over")

    watched = hook(looks, When.AROUND)
    called = wrapped(half, Watch(Scene(), [watched]).wrap(watched), When.AROUND)
    with pytest.raises(ZeroDivisionError):
        called(0)
    assert steps == ["over"]


def test_an_adapter_sees_the_result_and_returns_it_unchanged() -> None:
    seen = []

    def looks(scene: Scene, number: int) -> Generator[None, Any, None]:
        seen.append((yield))

    watched = hook(looks, When.AROUND)
    called = wrapped(half, Watch(Scene(), [watched]).wrap(watched), When.AROUND)
    assert called(4) == 3
    assert seen == [3]


def test_a_failed_hook_makes_its_operations_blind_wherever_they_are_told(traced: Path) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("broken")

    freed = hook(broken, When.BEFORE, f"{HERE}.emit")
    other = Hook(f"{HERE}.note", When.BEFORE, broken, (Op.FREE, Op.DONATE), "something")
    watch = Watch(Scene(), [freed, other])
    announce([freed, other])
    wrapped(half, watch.wrap(freed), When.BEFORE)(1)
    expected = {("emit", "free"): False, ("note", "free"): False, ("note", "donate"): True}
    assert live(traced) == expected


def test_an_operation_is_only_as_live_as_all_the_places_that_tell_it(traced: Path) -> None:
    there = Hook(f"{HERE}.emit", When.BEFORE, half, (Op.FREE, Op.DONATE), "something")
    gone = Hook(f"{HERE}.no_such_place", When.BEFORE, half, (Op.FREE,), "something")
    lost = Hook("no.such.module.place", When.BEFORE, half, (Op.INSERT,), "something")
    assert announce([there, gone, lost]) == [there]
    assert live(traced) == {
        ("emit", "donate"): True,
        ("no_such_place", "free"): False,
        ("place", "insert"): False,
    }


def test_in_an_unknown_release_one_place_of_several_is_enough(traced: Path) -> None:
    there = Hook(f"{HERE}.emit", When.BEFORE, half, (Op.FREE,), "something")
    gone = Hook(f"{HERE}.no_such_place", When.BEFORE, half, (Op.FREE, Op.INSERT), "something")
    assert announce([there, gone], strict=False) == [there]
    found = live(traced)
    assert found["emit", "free"]
    assert not found["no_such_place", "insert"]
