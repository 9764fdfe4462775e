"""Control files: what they say of a process, whatever its command line; a damaged one is a gap."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from children import Spawn, output

import slotscope
from slotscope.instrument import layout, probe
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op
from slotscope.instrument.scan import Scan


def talk(directory: Path) -> None:
    """100 events of two slots."""
    probe.start(directory, collector=False)
    for i in range(50):
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=i)
    probe.stop()


@pytest.mark.parametrize("argument", ["é" * 2000, '"\\' * 1000, "\x01" * 1000, "\udcff" * 1000])
def test_any_command_line_can_be_read(tmp_path: Path, spawn: Spawn, argument: str) -> None:
    code = """
        import sys
        from slotscope.instrument import probe
        probe.start(sys.argv[1], collector=False)
        probe.note("said", 1)
        """
    output(spawn(code, tmp_path / "trace", argument))
    with slotscope.open(tmp_path / "trace") as trace:
        (process,) = trace.sql("FROM processes").to_pylist()
    begin = f"{tmp_path / 'trace'} {argument[:100]}".replace("\udcff", "\ufffd")
    assert begin in process["command"]
    assert process["state"] == "stopped"


@pytest.mark.parametrize("damage", ["header", "cut", "identity", "gone"])
def test_a_damaged_control_file_is_a_gap(tmp_path: Path, damage: str) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    talk(directory)
    path = directory / layout.control_name(0)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[100:]
    else:
        data[20 if damage == "header" else layout.IDENTITY_AT + 5] ^= 1
    path.write_bytes(data)
    if damage == "gone":
        path.unlink()
    for collected in (False, True, True):
        if collected:
            Collector(directory, linger_s=0).run()
        with slotscope.open(directory) as trace:
            assert trace.stored == collected
            assert trace.sql("FROM events").num_rows == 200
            (gap,) = trace.sql("FROM gaps").to_pylist()
            told = trace.sql("FROM processes")["process"].to_pylist()
        assert (gap["process"], gap["reason"], gap["op"]) == (0, "damaged", None)
        assert layout.control_name(0) in gap["detail"]
        assert told == [1]


def test_a_trace_whose_only_control_file_is_damaged_can_be_read(tmp_path: Path) -> None:
    talk(tmp_path / "trace")
    (tmp_path / "trace" / layout.control_name(0)).write_bytes(b"junk")
    with slotscope.open(tmp_path / "trace") as trace:
        assert trace.sql("FROM events").num_rows == 100
        assert trace.sql("FROM gaps").num_rows == 1
        assert not trace.live


def test_a_control_file_of_another_version_is_refused(tmp_path: Path) -> None:
    talk(tmp_path / "trace")
    path = tmp_path / "trace" / layout.control_name(0)
    data = path.read_bytes()
    path.write_bytes(data[:8] + (99).to_bytes(4, "little") + data[12:])
    with pytest.raises(slotscope.TraceError, match="version 99.*that wrote it"):
        slotscope.open(tmp_path / "trace")


def test_reading_keeps_no_file_open(traced: Path) -> None:
    """A trace may have more segments than a process may have descriptors."""
    probe.emit(Op.ADVANCE, slots=[1, 2], depth=1)
    before = len(os.listdir("/proc/self/fd"))
    scans = [Scan(traced) for _ in range(20)]
    assert [len(scan.batch().events["seq"]) for scan in scans] == [2] * 20
    # The writer of this very process may take a segment or two meanwhile; twenty readers take none.
    assert len(os.listdir("/proc/self/fd")) < before + 10
    assert len(list(traced.glob(layout.SEGMENT_FILES))) >= 2


def test_a_trace_that_is_removed_ends(tmp_path: Path) -> None:
    talk(tmp_path / "trace")
    scan = Scan(tmp_path / "trace")
    assert len(scan.batch().events["seq"]) == 100
    shutil.rmtree(tmp_path / "trace")
    assert scan.batch().empty
    assert [row["state"] for row in scan.processes()] == ["stopped"]
