"""The compiled way and the Python way of `probe.emit` write the same bytes and count the same."""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slotscope
from slotscope.instrument import layout, native, probe
from slotscope.instrument.event import Op
from slotscope.instrument.layout import COLUMNS
from slotscope.instrument.segment import SegmentFile

pytestmark = pytest.mark.skipif(
    native.load_ring(lambda *_, **__: 0) is None, reason="the ring was not built: no compiler"
)

Calls = list[tuple[Any, dict[str, Any]]]
TIME = slice(24, 32)
"""Of a record: its time, which no two runs share."""


def written(directory: Path, calls: Calls, *, compiled: bool) -> tuple[list[bytes], list[int]]:
    """Records of calls, without checksum and time but checked, and what was lost of each op."""
    os.environ[native.ENVIRONMENT] = str(int(compiled))
    try:
        probe.start(directory, collector=False)
        for op, columns in calls:
            probe.emit(op, **columns)
        assert probe._session is not None
        assert probe._session._control is not None
        lost = probe._session._control.lost(1)
        probe.stop()
    finally:
        del os.environ[native.ENVIRONMENT]
    records = []
    for path in sorted(directory.glob("*.seg")):
        file = SegmentFile(path)
        found = file.read(layout.SEGMENT_HEADER_DATA, file.committed[0])
        assert found.damage == ()
        ends = [*found.offsets.tolist()[1:], len(found.data)]
        for begin, end in zip(found.offsets.tolist(), ends, strict=True):
            record = bytearray(found.data[begin:end])
            assert zlib.crc32(bytes(4) + record[4:]) == int.from_bytes(record[:4], "little")
            record[:4], record[TIME] = bytes(4), bytes(8)
            # What a gap tells of its window are times, too.
            kind = record[7]
            records.append(bytes(record[:40]) if kind == layout.Fact.GAP else bytes(record))
    return records, lost


def ints(code: str) -> st.SearchStrategy[int]:
    bits = {"B": (0, 255), "i": (-(2**31), 2**31 - 1), "q": (-(2**63), 2**63 - 1)}
    low, high = bits[code]
    return st.one_of(st.integers(low, high), st.integers(low - 2, high + 2))


@st.composite
def value(draw: st.DrawFn, code: str, count: int) -> Any:
    """Anything that somebody may give for a column, storable or not."""
    one = ints(code)
    many = st.lists(st.one_of(one, st.none()), min_size=count, max_size=count)
    form = draw(st.sampled_from(["one", "one", "none", "list", "tuple", "array", "odd"]))
    if form == "one":
        return draw(one)
    if form == "list":
        return draw(many)
    if form == "tuple":
        return tuple(draw(many))
    if form == "array":
        dtype = draw(st.sampled_from([np.int32, np.int64, np.uint8, np.float32]))
        step = draw(st.sampled_from([1, 2]))
        return np.arange(count * step, dtype=dtype)[::step]
    odd = [1.5, "7", [1.5], [np.int64(3)], np.int32(4), True, b"12", bytearray(4), [[1]], {}]
    return draw(st.sampled_from(odd)) if form == "odd" else None


@st.composite
def call(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(COLUMNS), max_size=9, unique_by=lambda c: c.argument))
    count = draw(st.integers(0, 5))
    columns = {c.argument: draw(value(c.code, count)) for c in chosen}
    if draw(st.integers(0, 20)) == 0:
        columns["depht"] = 1
    return draw(st.sampled_from([Op.ADVANCE, Op.FREE, 7, 0])), columns


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(call(), max_size=25))
def test_both_ways_write_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, calls: Calls
) -> None:
    directory = tmp_path_factory.mktemp("ways")
    plain = written(directory / "plain", calls, compiled=False)
    assert written(directory / "compiled", calls, compiled=True) == plain


def test_both_ways_fill_segments_alike(tmp_path: Path) -> None:
    draw = random.Random(3)
    calls: Calls = []
    for _ in range(1100):
        n = draw.choice([1, 3, 700, 2000])
        column = draw.choice([list(range(n)), np.arange(n, dtype=np.int32)])
        calls.append((Op.ADVANCE, {"slots": column, "node": 2**40, "depth": column}))
    plain = written(tmp_path / "plain", calls, compiled=False)
    assert written(tmp_path / "compiled", calls, compiled=True) == plain
    assert len(list((tmp_path / "compiled").glob("*.seg"))) == 2


def test_common_calls_do_not_come_to_python(traced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe.emit(Op.FREE, slots=1)  # The first word of a thread does.
    voice = probe._local.voice
    array, wide = np.arange(3, dtype=np.int32), np.arange(3)

    def refuse(*_: Any) -> int:
        raise AssertionError("this call was common")

    monkeypatch.setattr(type(voice), "append", refuse)
    for _ in range(2):
        probe.emit(Op.ADVANCE, slots=3, depth=4, label=None, node=2**40)
        probe.emit(Op.ADVANCE, slots=[1, 2, None], depth=(1, 2, 3), row=array, node=wide)
    monkeypatch.undo()
    with slotscope.open(traced) as trace:
        assert trace.sql("FROM events").num_rows == 1 + 2 * (1 + 3)


def test_a_call_keeps_nothing_that_it_was_given(traced: Path) -> None:
    array, numbers, big = np.arange(3, dtype=np.int32), [1, 2, 3], 2**40 + 7
    names = {"slots": array, "depth": numbers, "node": big, "launch": big}
    probe.emit(Op.ADVANCE, **names)
    gc.collect()
    before = [sys.getrefcount(each) for each in (array, numbers, big)]
    for _ in range(5000):
        probe.emit(Op.ADVANCE, **names)
        probe.emit(Op.ADVANCE, slots=array, depth=[1, 2], launch=big)  # refused
        probe.emit(Op.ADVANCE, slots=array, depth=1.5)  # refused
    assert [sys.getrefcount(each) for each in (array, numbers, big)] == before
    array.resize(5, refcheck=False)  # A buffer that somebody still holds can't be.


def test_an_emit_that_was_kept_is_silent_after_the_end(tmp_path: Path) -> None:
    probe.start(tmp_path / "first", collector=False)
    kept = probe.emit
    kept(Op.FREE, slots=1)
    probe.stop()
    kept(Op.FREE, slots=2)
    probe.start(tmp_path / "second", collector=False)
    kept(Op.FREE, slots=3)
    probe.stop()
    for name, slot in (("first", 1), ("second", 3)):
        with slotscope.open(tmp_path / name) as trace:
            assert trace.sql("SELECT slot FROM events").to_pylist() == [{"slot": slot}]


def test_threads_come_and_go_while_the_trace_is_left_and_begun(tmp_path: Path) -> None:
    """Each thread speaks into whatever trace there is; nobody writes into one that is over."""
    over = threading.Event()

    def speak(thread: int) -> None:
        while not over.is_set():
            probe.emit(Op.ADVANCE, slots=[thread, thread], depth=3)

    threads = [threading.Thread(target=speak, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for n in range(6):
        probe.start(tmp_path / str(n), collector=False)
        over.wait(0.05)
        probe.stop()
    over.set()
    for thread in threads:
        thread.join()
    for n in range(6):
        with slotscope.open(tmp_path / str(n)) as trace:
            gaps = trace.sql("FROM gaps WHERE reason = 'damaged'").to_pylist()
            assert gaps == []
