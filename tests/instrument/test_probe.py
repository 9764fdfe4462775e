"""What an engine says is what the trace holds, whatever it says it with; and it never suffers."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.arrow import events_table
from slotscope.instrument.event import Component, Kind, Op, Outcome, Role, Unit
from slotscope.instrument.layout import COLUMNS
from slotscope.instrument.scan import Scan


def rows(directory: Path, query: str = 'FROM events ORDER BY "order", seq') -> list[dict[str, Any]]:
    with slotscope.open(directory) as trace:
        found: list[dict[str, Any]] = trace.sql(query).to_pylist()
        return found


def test_off_it_says_nothing_and_returns_zero() -> None:
    assert probe.emit(Op.ALLOCATE, slots=[1]) == 0
    assert probe.request("r") == 0


def test_every_column_comes_back(traced: Path) -> None:
    given: dict[str, Any] = {
        "source": 2, "kind": Kind.VERIFY, "role": Role.SPARE, "component": Component.SSM,
        "unit": Unit.CHUNK, "outcome": Outcome.IN_PLACE,
    }  # fmt: skip
    numbers = [c for c in COLUMNS if c.code != "B"]
    given |= {c.argument: 100 + i for i, c in enumerate(numbers)}
    order = probe.emit(Op.LOAD_BACK, **given)
    (row,) = rows(traced)
    assert row["order"] == order
    assert row["position"] == given["launch"]
    assert {c.name: row[c.name] for c in numbers} == {c.name: given[c.argument] for c in numbers}
    names = [row[n] for n in ("op", "source", "kind", "role", "component", "unit", "outcome")]
    assert names == ["load_back", "device", "verify", "spare", "ssm", "chunk", "in_place"]


def test_what_is_not_said_is_null(traced: Path) -> None:
    probe.emit(Op.FREE, slots=3)
    (row,) = rows(traced)
    known = {"process", "writer", "seq", "order", "position", "time_ns", "op", "source", "pool"}
    assert {name for name, value in row.items() if value is not None} == known | {
        "slot",
        "generation",
    }


@pytest.mark.parametrize(
    "slots",
    [
        [4, None, 6],
        (4, None, 6),
        np.array([4, -(2**31), 6], np.int32),
        np.array([4, -(2**31), 6], np.int64),
        np.array([4, 9, -(2**31), 9, 6, 9], np.int32)[::2],
    ],
    ids=["list", "tuple", "int32", "int64", "strided"],
)
def test_a_call_is_one_event_for_each_slot(traced: Path, slots: Any) -> None:
    probe.emit(Op.ADVANCE, slots=slots, depth=[1, 2, 3], request=7, node=[2**40, 2, 3])
    found = rows(traced)
    assert [r["slot"] for r in found] == [4, None, 6]
    assert [r["depth"] for r in found] == [1, 2, 3]
    assert [r["request"] for r in found] == [7, 7, 7]
    assert [r["node"] for r in found] == [2**40, 2, 3]
    assert [r["seq"] for r in found] == [0, 1, 2]
    assert len({r["order"] for r in found}) == 1


MIXTURE: list[tuple[Any, Any, Any]] = [
    (1, 2, 3), ([4], [5], [6]), (7, None, 8), (9, 10, None), ([11], None, 12), ([13], [14], 15),
    (np.array([16], np.int32), 17, [18]), (19, np.array([20], np.int32), np.array([21])),
    ([None], 22, [23]), (24, 25, 26), (np.int32(27), [28], np.int64(29)), (30, None, [31]),
]  # fmt: skip


@pytest.mark.parametrize("shift", range(len(MIXTURE)))
def test_one_call_site_may_say_it_differently_each_time(traced: Path, shift: int) -> None:
    mixture = MIXTURE[shift:] + MIXTURE[:shift] + MIXTURE[::-1]
    for slot, depth, label in mixture:
        probe.emit(Op.ADVANCE, slots=slot, depth=depth, label=label)

    def plain(value: Any) -> Any:
        return value[0] if hasattr(value, "__len__") else value

    found = [(r["slot"], r["depth"], r["label"]) for r in rows(traced)]
    assert found == [tuple(map(plain, said)) for said in mixture]


def test_a_call_on_no_slots_is_no_event(traced: Path) -> None:
    assert probe.emit(Op.CLEAR, slots=[]) > 0
    probe.emit(Op.CLEAR, slots=[1])
    assert len(rows(traced)) == 1
    assert rows(traced, "FROM gaps") == []


BAD: list[dict[str, Any]] = [
    {"slots": [1, 2], "depth": [1]},
    {"slots": [1, 2], "depth": [1, 2, 3], "label": [1]},
    {"slots": 2**31},
    {"slots": np.array([2**31, 1])},
    {"slots": [2**31, 1]},
    {"slots": 1.5},
    {"slots": ["1", "2"]},
    {"slots": np.zeros((2, 2), np.int32)},
    {"slots": np.array([1.0, 2.0])},
    {"slots": [1, 2], "forward": [1, 2]},
    {"slots": 1, "depht": 2},
    {"slots": np.zeros(70_000, np.int32)},
]


@pytest.mark.parametrize("given", BAD, ids=str)
def test_a_call_that_cannot_be_stored_is_counted_and_never_raises(
    traced: Path, given: dict[str, Any]
) -> None:
    probe.emit(Op.FREE, slots=1)
    probe.emit(Op.COPY, **given)
    probe.emit(Op.FREE, slots=2)
    slots = given["slots"]
    count = len(slots) if hasattr(slots, "__len__") else 1
    assert [(r["op"], r["seq"]) for r in rows(traced)] == [("free", 0), ("free", 1)]
    (gap,) = rows(traced, "FROM gaps")
    assert (gap["reason"], gap["op"], gap["count"], gap["open"]) == (
        "refused",
        "copy",
        count,
        False,
    )
    assert gap["first_order"] == gap["last_order"]
    (process,) = rows(traced, "FROM processes")
    assert process["error"].startswith("COPY: ")


def test_facts_come_back(traced: Path) -> None:
    first = probe.request("r-1", attempt=2, client_id="'; DROP TABLE events", trace_parent="00-a")
    second = probe.request("r" * 1_000_000)
    probe.hook("Pool.alloc", [Op.ALLOCATE, Op.TRANSFER_SEND], live=False)
    probe.note("slots", 12)
    probe.note("text", "12")
    assert second == first + 1
    short, long = rows(traced, "FROM requests ORDER BY request")
    assert (short["request"], short["request_id"], short["attempt"]) == (first, "r-1", 2)
    assert (short["client_id"], short["trace_parent"]) == ("'; DROP TABLE events", "00-a")
    assert len(long["request_id"]) == 1_000_000
    hooks = rows(traced, "FROM hooks ORDER BY op")
    assert [(h["name"], h["op"], h["live"]) for h in hooks] == [
        ("Pool.alloc", "allocate", False),
        ("Pool.alloc", "transfer.send", False),
    ]
    notes = {n["key"]: n["value"] for n in rows(traced, "FROM notes")}
    assert notes == {"slotscope.level": "1", "slots": "12", "text": "12"}


def test_each_thread_has_a_writer_and_orders_are_of_the_process(traced: Path) -> None:
    gate = threading.Barrier(4)

    def speak(thread: int) -> None:
        gate.wait()
        for i in range(500):
            probe.emit(Op.ADVANCE, slots=[thread, thread], depth=i)
        gate.wait()  # A thread that had ended would leave its writer to the next.

    threads = [threading.Thread(target=speak, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(traced, "FROM events ORDER BY writer, seq")
    assert len(found) == 4 * 500 * 2
    assert len({r["writer"] for r in found}) == 4
    assert len({r["order"] for r in found}) == 4 * 500
    for slot in range(4):
        mine = [r for r in found if r["slot"] == slot]
        assert [r["seq"] for r in mine] == list(range(1000))
        assert [r["depth"] for r in mine] == [i // 2 for i in range(1000)]
        assert [r["order"] for r in mine] == sorted(r["order"] for r in mine)


def test_a_thread_takes_over_the_writer_of_one_that_has_ended(traced: Path) -> None:
    for i in range(300):
        thread = threading.Thread(target=lambda i=i: probe.emit(Op.FREE, slots=i))
        thread.start()
        thread.join()
    found = rows(traced)
    assert [r["slot"] for r in found] == list(range(300))
    assert len({r["writer"] for r in found}) == 1


def test_more_threads_than_writers_are_counted(traced: Path) -> None:
    ready, done = threading.Barrier(151), threading.Event()

    def speak() -> None:
        probe.emit(Op.FREE, slots=[1, 2])
        ready.wait()
        done.wait()

    threads = [threading.Thread(target=speak) for _ in range(150)]
    for thread in threads:
        thread.start()
    ready.wait()
    done.set()
    for thread in threads:
        thread.join()
    lost = rows(traced, "SELECT sum(count) AS lost FROM gaps")[0]["lost"] or 0
    assert lost > 0
    assert len(rows(traced)) + lost == 300


def test_a_signal_handler_may_speak(traced: Path) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: probe.emit(Op.FREE, slots=9))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for i in range(20_000):
            probe.emit(Op.ADVANCE, slots=[1, 2], depth=i)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    found = rows(traced, "SELECT depth FROM events WHERE op = 'advance' ORDER BY seq")
    lost = rows(traced, "FROM gaps")
    assert [r["depth"] for r in found] == [i // 2 for i in range(40_000)]
    assert {g["op"] for g in lost} <= {"free"}


def test_a_forked_child_is_a_process_of_its_own(traced: Path) -> None:
    probe.hook("Pool.free", [Op.FREE], live=True)
    probe.emit(Op.ALLOCATE, slots=[1])
    child = os.fork()
    if child == 0:
        probe.emit(Op.FREE, slots=[1])
        probe.stop()
        os._exit(0)
    os.waitpid(child, 0)
    probe.emit(Op.ALLOCATE, slots=[2])
    found = rows(traced, "FROM events ORDER BY process, seq")
    assert [(r["process"], r["op"], r["seq"]) for r in found] == [
        (0, "allocate", 0),
        (0, "allocate", 1),
        (1, "free", 0),
    ]
    assert len({r["writer"] for r in found}) == 2
    hooks = rows(traced, "FROM hooks ORDER BY process")
    assert [(h["process"], h["op"]) for h in hooks] == [(0, "free"), (1, "free")]
    states = [p["state"] for p in rows(traced, "FROM processes ORDER BY process")]
    assert states == ["running", "stopped"]


def test_a_forked_child_that_says_nothing_leaves_nothing(traced: Path) -> None:
    before = sorted(traced.glob("*.ctl"))
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert sorted(traced.glob("*.ctl")) == before


def test_a_spawned_process_finds_the_trace_in_its_environment(traced: Path, spawn: Any) -> None:
    child = spawn("""
        from slotscope.instrument import probe
        from slotscope.instrument.event import Op
        assert probe.start_from_environment()
        probe.emit(Op.FREE, slots=[1])
    """)
    assert child.wait(60) == 0, child.stdout.read()
    assert [(r["process"], r["op"]) for r in rows(traced)] == [(1, "free")]
    states = [p["state"] for p in rows(traced, "FROM processes ORDER BY process")]
    assert states == ["running", "stopped"]


def test_the_probe_imports_numpy_and_the_standard_library_alone(spawn: Any) -> None:
    child = spawn("""
        import json, sys
        import slotscope.instrument.probe
        print(json.dumps(sorted({m.partition(".")[0] for m in sys.modules})))
    """)
    text, _ = child.communicate(timeout=60)
    for heavy in ("duckdb", "pyarrow", "typer", "rich", "torch", "opentelemetry"):
        assert heavy not in json.loads(text)


def test_a_start_that_cannot_be_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(probe.ProbeError, match="16 MiB of room"):
        probe.start(tmp_path / "file" / "trace", collector=False)
    with pytest.raises(probe.ProbeError, match="level is 7"):
        probe.start(tmp_path / "trace", level=7, collector=False)
    probe.start(tmp_path / "trace", level=0)
    assert not (tmp_path / "trace").exists()


def test_a_second_start_is_refused(traced: Path, tmp_path: Path) -> None:
    with pytest.raises(probe.ProbeError, match="Call probe.stop"):
        probe.start(tmp_path / "other", collector=False)


def test_stopping_leaves_only_what_was_written(traced: Path) -> None:
    probe.emit(Op.FREE, slots=1)
    probe.stop()
    probe.emit(Op.FREE, slots=2)
    segments = list(traced.glob("*.seg"))
    assert len(segments) == 1
    assert segments[0].stat().st_size < 1000
    assert len(rows(traced)) == 1


values = st.one_of(st.none(), st.integers(-(2**31) + 1, 2**31 - 1))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([Op.ALLOCATE, Op.ADVANCE, Op.DONATE]),
            st.integers(1, 5),
            st.dictionaries(
                st.sampled_from([c.name for c in COLUMNS if c.listable and c.name != "slot"]),
                st.one_of(values, st.lists(values, min_size=5, max_size=5)),
            ),
        ),
        max_size=30,
    )
)
def test_any_mixture_of_values_and_lists_comes_back(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[Op, int, dict[str, Any]]]
) -> None:
    directory = tmp_path_factory.mktemp("trace")
    probe.start(directory, collector=False)
    expected: list[dict[str, Any]] = []
    for op, count, columns in calls:
        given: dict[str, Any] = {
            n: v[:count] if isinstance(v, list) else v for n, v in columns.items()
        }
        probe.emit(op, slots=list(range(count)), **given)
        for i in range(count):
            row = {n: v[i] if isinstance(v, list) else v for n, v in given.items()}
            expected.append({"op": op.name.lower(), "slot": i} | row)
    probe.stop()
    scan = Scan(directory)
    found = events_table(scan.batch().events).to_pylist()
    assert [{n: f[n] for n in e} for f, e in zip(found, expected, strict=True)] == expected


def test_an_amendment_can_name_the_event_that_it_completes(traced: Path) -> None:
    probe.emit(Op.FORWARD_LAUNCH, forward=1)
    first = probe.next_seq()
    probe.emit(Op.FREE, slots=[None, None])
    assert probe.next_seq() == first + 2
    probe.emit(Op.AMEND, slots=[7], amends=first + 1)
    found = rows(traced)
    assert [row["seq"] for row in found if row["op"] == "free"] == [first, first + 1]
    assert found[-1]["amends"] == first + 1


def test_off_there_is_no_next_event() -> None:
    assert probe.next_seq() == -1
