"""Exactly once, whoever is killed: every record that was committed is stored, and none twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from children import Spawn, output

import slotscope
from slotscope.instrument import probe, spawn, store
from slotscope.instrument.collector import Collector, CollectorError, Reading
from slotscope.instrument.event import Op
from slotscope.instrument.scan import Scan

ORDER = "SELECT * FROM events ORDER BY writer, seq"


def collect(directory: Path, linger_s: float = 0) -> Collector:
    collector = Collector(directory, linger_s=linger_s, interval_s=0.01)
    collector.run()
    return collector


def rows(directory: Path, query: str = ORDER) -> list[dict[str, Any]]:
    with slotscope.open(directory) as trace:
        found: list[dict[str, Any]] = trace.sql(query).to_pylist()
        return found


def talk(directory: Path, calls: int = 50) -> None:
    """A process's whole part in a trace, of about 15 ops per call."""
    probe.start(directory, collector=False)
    probe.hook("Pool.alloc", [Op.ALLOCATE], live=True)
    for i in range(calls):
        number = probe.request(f"r{i}")
        launch = probe.emit(Op.FORWARD_LAUNCH, forward=i)
        probe.emit(Op.ALLOCATE, slots=[1, 2, 3], request=number)
        probe.emit(Op.FREE, slots=[1, 2, 3])
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=[i, i], launch=launch, forward=i)
        if i % 10 == 0:
            probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])  # refused
    probe.stop()


def test_segments_and_duckdb_hold_the_same(tmp_path: Path) -> None:
    queries = [ORDER] + [
        f"SELECT * FROM {table} ORDER BY ALL"
        for table in ("requests", "hooks", "notes", "gaps", "anchors", "processes", "meta")
    ]
    talk(tmp_path / "trace")
    talk(tmp_path / "trace")
    before = [rows(tmp_path / "trace", q) for q in queries]
    assert collect(tmp_path / "trace").stored_count == len(before[0]) == 2 * 50 * 9
    with slotscope.open(tmp_path / "trace") as trace:
        assert trace.stored
        after = [trace.sql(q).to_pylist() for q in queries]
    assert after == before


def test_collecting_again_stores_nothing_twice(tmp_path: Path) -> None:
    talk(tmp_path / "trace")
    first = collect(tmp_path / "trace").stored_count
    assert collect(tmp_path / "trace").stored_count == 0
    talk(tmp_path / "trace")
    assert collect(tmp_path / "trace").stored_count == first
    assert len(rows(tmp_path / "trace")) == 2 * first


def test_what_came_after_the_collector_is_read_from_the_segments(tmp_path: Path) -> None:
    talk(tmp_path / "trace")
    collect(tmp_path / "trace")
    talk(tmp_path / "trace")
    with slotscope.open(tmp_path / "trace") as trace:
        assert not trace.stored
        assert trace.sql("FROM events").num_rows == 2 * 50 * 9


def test_a_trace_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTSCOPE_LINGER_S", "0")
    directory = tmp_path / "traces" / "today"
    before = os.umask(0o022)
    try:
        talk(directory)
        collect(directory)
        assert os.umask(0o022) == 0o022
        spawn.start(directory)
        while "events stored" not in (directory / spawn.LOG_NAME).read_text():
            time.sleep(0.01)
    finally:
        os.umask(before)
    assert directory.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert {store.NAME, spawn.LOG_NAME, spawn.LOCK_NAME} <= files.keys()
    assert set(files.values()) == {0o600}, files


def test_a_second_collector_leaves_with_a_reason(tmp_path: Path, traced: Path) -> None:
    spawn.start(traced)
    while not spawn.locked(traced):
        time.sleep(0.01)
    with pytest.raises(CollectorError, match="runs on .* already"):
        collect(traced)
    os.kill(int((traced / spawn.LOCK_NAME).read_text()), signal.SIGTERM)
    while spawn.locked(traced):
        time.sleep(0.01)


def test_what_trickles_in_is_gathered(tmp_path: Path, spawn: Spawn) -> None:
    """There is always something new, but a batch for each bit of it would cost a core."""
    directory = tmp_path / "trace"
    child = spawn(
        """
        import sys, time
        from slotscope.instrument import probe
        from slotscope.instrument.event import Op
        probe.start(sys.argv[1], collector=False)
        for i in range(1000):
            probe.emit(Op.ADVANCE, slots=[1], depth=i)
            time.sleep(0.002)
        probe.stop()
        """,
        directory,
    )
    while not any(directory.glob("*.ctl")):
        time.sleep(0.01)
    batches: list[int] = []

    class Counting(Collector):
        def _step(self, found: Reading, store: store.Store) -> None:
            batches.append(self.stored_count)
            super()._step(found, store)

    interval_s = 0.2
    begun_s = time.monotonic()
    collector = Counting(directory, linger_s=0, interval_s=interval_s)
    collector.run()
    assert collector.stored_count == 1000
    # While the writer runs each batch is followed by a pause; two more see that it has ended.
    assert len(batches) <= (time.monotonic() - begun_s) / interval_s + 3
    output(child)


def test_a_directory_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="holds no trace"):
        collect(tmp_path)
    with pytest.raises(CollectorError, match="can't be collected"):
        collect(tmp_path / "absent")


def test_a_reader_that_has_the_file_open_delays_the_collector_only(
    tmp_path: Path, spawn: Spawn
) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    collect(directory)
    with slotscope.open(directory) as reader:
        assert reader.stored
        talk(directory)
        child = spawn(
            """
            import sys
            from pathlib import Path
            from slotscope.instrument.collector import Collector
            collector = Collector(Path(sys.argv[1]), linger_s=0)
            collector.run()
            print(collector.stored_count)
            """,
            directory,
        )
        assert child.stdout is not None
        assert "is open elsewhere" in child.stdout.readline()
        assert reader.sql("FROM events").num_rows == 50 * 9
    assert output(child).endswith(f"{50 * 9}\n")


def test_an_engine_gets_its_collector_and_outlives_it_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawn: Spawn
) -> None:
    """The collector is spawned by the engine, goes on after its SIGKILL, and then ends."""
    monkeypatch.setenv("SLOTSCOPE_LINGER_S", "0.2")
    child = spawn(
        """
        import os, signal, sys
        from slotscope.instrument import probe
        from slotscope.instrument.event import Op
        probe.start(sys.argv[1])
        for i in range(1000):
            probe.emit(Op.ADVANCE, slots=[1, 2, 3], depth=i)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path / "trace",
    )
    assert child.wait(60) == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while not (stored := _stored(tmp_path / "trace")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert stored
    assert len(rows(tmp_path / "trace")) == 3000
    (process,) = rows(tmp_path / "trace", "FROM processes")
    assert process["state"] == "crashed"


def _stored(directory: Path) -> bool:
    """A collector has been there, and has gone."""
    if spawn.locked(directory) or not (directory / store.NAME).exists():
        return False
    with slotscope.open(directory) as trace:
        return trace.stored


_WRITER = """
import os, sys, threading, time
from slotscope.instrument import probe
from slotscope.instrument.event import Op

probe.start(sys.argv[1], collector=False)
pipe = os.open(sys.argv[2], os.O_WRONLY)

def speak(thread):
    i = 0
    while True:
        probe.emit(Op.ADVANCE, slots=[thread] * 8, depth=list(range(8)), request=i)
        if i % 10 == 0:
            probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])  # Refused, and counted.
        os.write(pipe, thread.to_bytes(4, "little") + i.to_bytes(4, "little"))
        i += 1
        time.sleep(0.0005)

for thread in (1, 2):
    threading.Thread(target=speak, args=(os.getpid() * 4 + thread,)).start()
"""

_COLLECTOR = """
import sys
from pathlib import Path
from slotscope.instrument.collector import Collector
Collector(Path(sys.argv[1]), linger_s=60, interval_s=0.005).run()
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_matrix(tmp_path: Path, seed: int) -> None:
    """Writers and collectors are killed at random. What a writer was told to be committed is
    stored, exactly once, without a hole; what was refused is counted."""
    draw = random.Random(seed)
    directory, fifo = tmp_path / "trace", tmp_path / "acks"
    directory.mkdir()
    os.mkfifo(fifo)
    acks = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    heard = bytearray()

    def python(code: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, str(directory), str(fifo)])

    def listen(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                heard.extend(os.read(acks, 1 << 16))
            time.sleep(0.002)

    for _ in range(3):
        writers = [python(_WRITER) for _ in range(2)]
        before = len(heard)
        while len(heard) == before:
            listen(0.05)
        collector = python(_COLLECTOR)
        listen(draw.uniform(0.2, 0.8))
        victims = draw.choice([[collector, *writers], writers, [writers[0], collector]])
        for victim in victims:
            victim.kill()
            victim.wait()
        listen(draw.uniform(0, 0.2))
        for survivor in (*writers, collector):
            survivor.kill()
            survivor.wait()
        listen(0.02)
    os.close(acks)
    collect(directory)
    _judge(directory, bytes(heard))


def _judge(directory: Path, heard: bytes) -> None:
    acked: dict[int, int] = defaultdict(lambda: -1)
    for at in range(0, len(heard) - 7, 8):
        thread = int.from_bytes(heard[at : at + 4], "little")
        acked[thread] = max(acked[thread], int.from_bytes(heard[at + 4 : at + 8], "little"))
    assert acked
    with slotscope.open(directory) as trace:
        assert trace.stored
        assert (
            trace.sql(
                "SELECT count(*) FROM events GROUP BY writer, seq HAVING count(*) > 1"
            ).num_rows
            == 0
        )
        holes = trace.sql(
            "SELECT writer FROM events GROUP BY writer HAVING max(seq) + 1 <> count(*)"
        )
        assert holes.num_rows == 0
        calls = trace.sql(
            "SELECT slot, max(request) AS last, count(*) AS n, count(DISTINCT depth) AS depths "
            "FROM events GROUP BY slot"
        ).to_pylist()
        refused = trace.sql("SELECT writer, sum(count) AS n FROM gaps GROUP BY writer")
        said = trace.sql("SELECT writer, max(request) AS last FROM events GROUP BY writer")
        states = trace.sql("SELECT DISTINCT state FROM processes")["state"].to_pylist()
    stored = {row["slot"]: row for row in calls}
    for thread, last in acked.items():
        assert stored[thread]["last"] >= last
    for row in stored.values():
        assert row["n"] == 8 * (row["last"] + 1)
        assert row["depths"] == 8
    lost = dict(zip(*(refused[c].to_pylist() for c in ("writer", "n")), strict=True))
    for row in said.to_pylist():
        # A refused call comes after each tenth one; the last may not have got so far.
        expected = 2 * (row["last"] // 10 + 1)
        assert lost.get(row["writer"], 0) in {expected, expected - 2}
    assert states == ["crashed"]


def test_a_failed_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    scan = Scan(directory)
    scan.look()
    opened = store.Store(directory / store.NAME, scan.uid)
    batch = scan.batch()
    batch.notes.append({"process": 0, "key": None, "value": "a key may not be null"})
    with pytest.raises(Exception, match="NOT NULL"):
        opened.append(batch, scan.processes(), scan.open_gaps(), scan.next_seq)
    opened.close()
    assert collect(directory).stored_count == 50 * 9


def test_an_unknown_schema_version_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    collect(directory)
    with store.connect(directory / store.NAME) as con:
        con.execute("UPDATE meta SET schema_version = 99")
    for use in (lambda: collect(directory), lambda: slotscope.open(directory)):
        with pytest.raises(
            slotscope.SchemaError, match=r"live\.duckdb has schema version 99.*remove"
        ):
            use()


def test_a_damaged_file_is_refused_by_the_collector_and_not_needed_by_readers(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    collect(directory)
    path = directory / store.NAME
    path.write_bytes(b"junk" + path.read_bytes()[4:])
    with pytest.raises(store.StoreError, match="made anew from the segments"):
        collect(directory)
    assert len(rows(directory)) == 50 * 9


def test_one_batch_is_read_while_another_is_stored(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    for _ in range(4):
        talk(directory)
    expected = rows(directory)
    collector = Collector(directory, linger_s=0, events_max=1)
    collector.run()
    assert collector.stored_count == len(expected)
    with slotscope.open(directory) as trace:
        assert trace.stored
        assert trace.sql(ORDER).to_pylist() == expected
    assert collect(directory).stored_count == 0
