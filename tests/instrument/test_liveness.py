"""Who is alive, seen from another PID namespace too: there a process number means nothing."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from children import Spawn

from slotscope.instrument import layout, liveness
from slotscope.instrument.control import ControlImage

SPEAKER = """
    import sys, time
    from slotscope.instrument import probe
    from slotscope.instrument.event import Op
    probe.start(sys.argv[1], collector=False)
    for i in range(100):
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=i)
    print("said", flush=True)
    time.sleep(600)
"""


def move_away(path: Path) -> None:
    """Make a control file say that its process lives in another PID namespace of this host."""
    size = struct.calcsize(layout.CONTROL_HEADER)
    with path.open("r+b") as file:
        head = file.read(size)
        length = struct.unpack(layout.CONTROL_HEADER, head)[4]
        file.seek(layout.IDENTITY_AT)
        told = json.loads(file.read(length))
        assert told["home"] == liveness.home()
        told["home"] = told["home"][:-1] + ("1" if told["home"][-1] != "1" else "2")
        identity = json.dumps(told, ensure_ascii=False).encode()
        assert len(identity) == length
        file.seek(layout.IDENTITY_AT)
        file.write(identity)
        file.seek(size - 4)
        file.write(struct.pack("<I", zlib.crc32(identity, zlib.crc32(head[: size - 4]))))


def speaker(spawn: Spawn, directory: Path) -> subprocess.Popen[str]:
    """A process that has said 200 events, and goes on."""
    child = spawn(SPEAKER, directory)
    assert child.stdout is not None
    assert child.stdout.readline() == "said\n"
    return child


@pytest.mark.parametrize("away", [False, True], ids=["here", "in another namespace"])
def test_a_process_runs_until_it_is_killed(tmp_path: Path, spawn: Spawn, away: bool) -> None:
    child = speaker(spawn, tmp_path / "trace")
    path = tmp_path / "trace" / layout.control_name(0)
    if away:
        move_away(path)
    image = ControlImage(path)
    assert image.state == "running"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert image.state == "crashed"
    assert ControlImage(path).state == "crashed"


def test_a_forked_child_is_not_taken_for_its_parent(tmp_path: Path, spawn: Spawn) -> None:
    child = spawn(
        """
        import os, signal, sys, time
        from slotscope.instrument import probe
        probe.start(sys.argv[1], collector=False)
        if forked := os.fork():
            print(forked, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        """,
        tmp_path / "trace",
    )
    assert child.stdout is not None
    forked = int(child.stdout.readline())
    child.wait()
    try:
        path = tmp_path / "trace" / layout.control_name(0)
        move_away(path)
        assert ControlImage(path).state == "crashed"
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_collector_stays_for_a_writer_whose_number_means_nothing_here(
    tmp_path: Path, spawn: Spawn
) -> None:
    child = speaker(spawn, tmp_path / "trace")
    move_away(tmp_path / "trace" / layout.control_name(0))
    collecting = spawn(
        """
        import sys
        from pathlib import Path
        from slotscope.instrument.collector import Collector
        Collector(Path(sys.argv[1]), linger_s=0, interval_s=0.01).run()
        """,
        tmp_path / "trace",
    )
    with pytest.raises(subprocess.TimeoutExpired):
        collecting.wait(2)
    child.kill()
    child.wait()
    assert collecting.wait(60) == 0


def test_a_process_that_is_hidden_is_told_by_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "held"
    path.touch()
    assert not liveness.lives(path, os.getpid(), 0, "elsewhere")
    descriptor = liveness.hold(path)
    assert liveness.lives(path, os.getpid(), 0, "elsewhere")
    os.close(descriptor)
    assert not liveness.lives(path, os.getpid(), 0, "elsewhere")


def test_a_process_says_that_its_trace_was_removed(tmp_path: Path, spawn: Spawn) -> None:
    code = """
        import shutil, sys, time
        from slotscope.instrument import probe
        probe.start(sys.argv[1], collector=False)
        shutil.rmtree(sys.argv[1])
        time.sleep(600)
        """
    child = spawn(code, tmp_path / "trace")
    assert child.stdout is not None
    assert child.stdout.readline().startswith(f"slotscope: {tmp_path / 'trace'} is gone")
