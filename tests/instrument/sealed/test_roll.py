"""A trace that is rolled tells what it told before, wherever the roll was cut short."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from children import Spawn

import slotscope
from slotscope.instrument import layout, probe, store
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op
from slotscope.instrument.scan import Scan
from slotscope.instrument.sealed import manifest

TABLES = ("events", "requests", "hooks", "notes", "gaps", "anchors", "processes", "meta")
STEPS = ("written", "named", "told", "committed", "checkpointed", "dropped")

SEAL = """
import os, signal, sys
from pathlib import Path
from slotscope.instrument.scan import Scan
from slotscope.instrument.store import Store

directory, last = Path(sys.argv[1]), sys.argv[2]
scan = Scan(directory)
scan.look()
store = Store(directory / "live.duckdb", scan.uid)
store.resume(scan)
for step in store.sealing():
    if step == last:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def talk(directory: Path, first: int = 0, calls: int = 40) -> None:
    """A process's part in a trace. Slots go on with the lives that they had."""
    probe.start(directory, collector=False)
    probe.hook("Pool.alloc", [Op.ALLOCATE], live=True)
    for i in range(first, first + calls):
        number = probe.request(f"r{i}")
        launch = probe.emit(Op.FORWARD_LAUNCH, forward=i)
        probe.emit(Op.ALLOCATE, slots=[1, 2, 3], request=number)
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=[i, i], launch=launch, forward=i)
        probe.emit(Op.FREE, slots=[1, 2, 3])
        if i % 10 == 0:
            probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])  # refused
    probe.stop()


def collect(directory: Path) -> None:
    Collector(directory, linger_s=0, interval_s=0.01).run()


def seal(directory: Path) -> None:
    """Store what there is, and roll it, whoever still writes."""
    scan = Scan(directory)
    scan.look()
    opened = store.Store(directory / store.NAME, scan.uid)
    opened.resume(scan)
    opened.append(scan.batch(), scan.processes(), scan.open_gaps(), scan.next_seq)
    opened.seal()
    opened.close()


def told(directory: Path) -> dict[str, list[dict[str, Any]]]:
    with slotscope.open(directory) as trace:
        return {t: trace.sql(f"FROM {t} ORDER BY ALL").to_pylist() for t in TABLES}


def segments(directory: Path) -> int:
    return len(list(directory.glob(layout.SEGMENT_FILES)))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    directory = tmp_path / "trace"
    talk(directory)
    collect(directory)
    return directory


def test_a_roll_changes_nothing_that_is_told(trace: Path) -> None:
    before = told(trace)
    seal(trace)
    assert segments(trace) == 0
    assert told(trace) == before
    collect(trace)
    assert told(trace) == before


def test_a_trace_goes_on_behind_its_generations(trace: Path, tmp_path: Path) -> None:
    for i in (1, 2):
        seal(trace)
        talk(trace, first=40 * i)
    grown = told(trace)
    with slotscope.open(trace) as opened:
        assert not opened.stored
        numbers = opened.sql(
            "SELECT DISTINCT generation FROM events WHERE op = 'allocate' ORDER BY ALL"
        )["generation"].to_pylist()
    assert numbers == list(range(1, 80, 2))  # Each process has slots of its own.
    assert len(grown["events"]) == 3 * 40 * 9
    collect(trace)
    with slotscope.open(trace) as opened:
        assert opened.stored
    assert told(trace) == grown


def test_lives_are_counted_on_over_generations(tmp_path: Path) -> None:
    """One process that goes on, sealed twice on the way, by a collector that begins anew."""
    directory, whole = tmp_path / "trace", tmp_path / "whole"
    probe.start(directory, collector=False)
    for _ in range(3):
        for _ in range(5):
            launch = probe.emit(Op.FORWARD_LAUNCH, forward=1)
            probe.emit(Op.ALLOCATE, slots=[1, 2])
            probe.emit(Op.FREE, slots=[1, 2])
            probe.emit(Op.ADVANCE, slots=[1], depth=1, launch=launch)
        whole.mkdir(exist_ok=True)
        for path in (*directory.glob("p*.seg"), *directory.glob("p*.ctl")):
            shutil.copy(path, whole)
        seal(directory)
    query = "SELECT * FROM events ORDER BY writer, seq"
    with slotscope.open(directory) as sealed, slotscope.open(whole) as expanded:
        assert sealed.sql(query) == expanded.sql(query)
        assert sealed.sql("SELECT max(generation) AS n FROM events")["n"].to_pylist() == [30]
    probe.stop()


@pytest.mark.parametrize("step", STEPS)
def test_a_roll_that_is_killed_is_repaired(trace: Path, spawn: Spawn, step: str) -> None:
    before = told(trace)
    assert spawn(SEAL, trace, step).wait(60) == -signal.SIGKILL
    assert told(trace) == before
    talk(trace, first=40)
    grown = told(trace)
    collect(trace)
    assert told(trace) == grown
    sealed = manifest.find(trace)
    assert len(sealed) == (STEPS.index(step) >= STEPS.index("committed"))
    assert [p.name for p in trace.glob("gen-*.new")] == []
    seal(trace)
    assert told(trace) == grown
    assert segments(trace) == 0


def test_a_lost_live_file_is_made_anew_from_generations_and_segments(trace: Path) -> None:
    seal(trace)
    talk(trace, first=40)
    before = told(trace)
    (trace / store.NAME).unlink()
    assert told(trace) == before
    collect(trace)
    assert told(trace) == before


def test_events_are_sorted_by_slot(trace: Path) -> None:
    seal(trace)
    with store.connect(trace / manifest.data_name(0), access_mode="READ_ONLY") as con:
        rows = con.execute('SELECT process, pool, slot, "order" FROM events').fetchall()
    assert rows == sorted(rows, key=lambda r: (r[0], r[1], r[2] is None, r[2] or 0, r[3]))


def test_a_manifest_tells_what_it_lies_beside(trace: Path) -> None:
    seal(trace)
    (told_,) = manifest.find(trace)
    path = trace / manifest.data_name(0)
    assert told_.events == 40 * 9
    assert told_.bytes == path.stat().st_size
    told_.verify(trace)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(manifest.SealedError, match="checksum"):
        told_.verify(trace)


def test_a_missing_generation_is_refused_by_name(trace: Path) -> None:
    seal(trace)
    (trace / manifest.data_name(0)).unlink()
    with pytest.raises(slotscope.TraceError, match=r"gen-000000\.duckdb can't be read"):
        slotscope.open(trace)
    with pytest.raises(manifest.SealedError, match=r"gen-000000\.duckdb is missing"):
        collect(trace)


def test_a_damaged_manifest_is_refused_by_name(trace: Path) -> None:
    seal(trace)
    (trace / store.NAME).unlink()
    (trace / manifest.manifest_name(0)).write_text(json.dumps({"number": 0}))
    with pytest.raises(slotscope.TraceError, match=r"gen-000000\.json is no manifest"):
        slotscope.open(trace)


def test_an_open_trace_says_that_it_was_sealed_meanwhile(traced: Path) -> None:
    probe.emit(Op.FREE, slots=1)
    with slotscope.open(traced) as opened:
        assert not opened.grown()
        seal(traced)
        probe.emit(Op.FREE, slots=1)
        assert opened.grown()
        assert not opened.catch_up()
        assert opened.sql("FROM events").num_rows == 1
    with slotscope.open(traced) as opened:
        assert opened.sql("FROM events").num_rows == 2


def test_a_change_that_comes_after_its_seal_makes_blind(traced: Path) -> None:
    """Rewritten generations would contradict files that never change; so the loss is told."""
    probe.emit(Op.ALLOCATE, slots=1)
    for depth in (1, 2):
        probe.emit(Op.ADVANCE, slots=1, depth=depth)
    scan = Scan(traced)
    scan.look()
    opened = store.Store(traced / store.NAME, scan.uid)
    batch = scan.batch()
    opened.append(batch, scan.processes(), [], scan.next_seq)
    opened.seal()
    probe.emit(Op.FREE, slots=1)
    late = scan.batch()
    late.events["order"] = late.events["position"] = batch.events["order"][1:2]
    opened.append(late, scan.processes(), [], scan.next_seq)
    opened.close()
    with store.connect(traced / store.NAME) as con:
        (gap,) = con.execute("SELECT reason, count, op FROM gaps").fetchall()
    assert gap == ("late", 2, None)
