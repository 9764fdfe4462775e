"""A directory that takes no more: the engine goes on, and the loss is known to the event."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import Spawn, output

import slotscope

_TALKER = """
    import json, os, resource, sys, time
    from pathlib import Path
    from slotscope.instrument import layout, probe
    from slotscope.instrument.event import Op

    directory = Path(sys.argv[1])
    filler = directory.parent / "filler"
    probe.start(directory, collector=False)
    said = {"advance": 0, "free": 0}
    wide = [c.argument for c in layout.COLUMNS if c.listable]  # 400 events take 29 KB.

    def talk(rounds):
        for _ in range(rounds):
            probe.emit(Op.ADVANCE, **{name: list(range(400)) for name in wide})
            probe.emit(Op.FREE, **{name: list(range(100)) for name in wide})
            said["advance"] += 400
            said["free"] += 100

    talk(5)
    fill(filler)
    talk(1000)
    relieve(filler)
    time.sleep(1.0)
    talk(5)
    probe.stop()
    print(json.dumps(said))
"""

_RLIMIT = """
    def fill(filler):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

    def relieve(filler):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
"""

_TMPFS = """
    def fill(filler):
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(b"x" * 65536)
                    file.flush()
            except OSError:
                pass

    def relieve(filler):
        filler.unlink()
"""


def script(disk: str) -> str:
    head, tail = _TALKER.split("    directory = ", 1)
    return head + disk + "\n    directory = " + tail


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 24 MiB; skipped where it can't be mounted."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "slotscope-test", str(mount)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs needs root; the test with RLIMIT_FSIZE runs instead")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def check(directory: Path, said: dict[str, int]) -> None:
    """Stored and lost make up what was said, op by op, and the gap is closed where it was."""
    with slotscope.open(directory) as trace:
        events = trace.sql("SELECT op::VARCHAR AS op, count(*) AS n FROM events GROUP BY op")
        lost = trace.sql("SELECT op, sum(count)::BIGINT AS n FROM gaps GROUP BY op")
        gaps = trace.sql("FROM gaps").to_pylist()
        orders = trace.sql('SELECT max("order") AS last FROM events').to_pylist()
    stored = {r["op"]: r["n"] for r in events.to_pylist()}
    missing = {r["op"]: r["n"] for r in lost.to_pylist()}
    assert {op: stored[op] + missing.get(op, 0) for op in said} == said
    assert missing["free"] > 0
    assert missing["advance"] > 0
    assert {g["reason"] for g in gaps} == {"full"}
    assert not any(g["open"] for g in gaps)
    assert all(g["last_order"] < orders[0]["last"] for g in gaps)


def test_a_full_disk_costs_events_and_nothing_else(small_disk: Path, spawn: Spawn) -> None:
    said = json.loads(output(spawn(script(_TMPFS), small_disk / "trace")))
    check(small_disk / "trace", said)


def test_a_limit_on_file_size_costs_events_and_nothing_else(tmp_path: Path, spawn: Spawn) -> None:
    said = json.loads(output(spawn(script(_RLIMIT), tmp_path / "trace")))
    check(tmp_path / "trace", said)


def test_a_directory_that_is_gone_costs_events_and_nothing_else(
    tmp_path: Path, spawn: Spawn
) -> None:
    text = output(
        spawn(
            """
            import shutil, sys
            from slotscope.instrument import probe
            from slotscope.instrument.event import Op
            probe.start(sys.argv[1], collector=False)
            shutil.rmtree(sys.argv[1])
            for i in range(200):
                probe.note("bulk", "x" * 100_000)
                probe.emit(Op.FREE, slots=i)
            probe.stop()
            print("alive")
            """,
            tmp_path / "trace",
        )
    )
    # It is told that the directory is gone, if it lives long enough to notice.
    assert [line for line in text.splitlines() if "is gone, so" not in line] == ["alive"]


def test_a_directory_that_another_user_owns_is_refused_at_the_start(
    tmp_path: Path, spawn: Spawn
) -> None:
    text = output(
        spawn(
            """
            import os, sys
            from slotscope.instrument import probe
            from slotscope.instrument.event import Op
            os.mkdir(sys.argv[1], 0o500)
            if os.getuid() == 0:
                os.setresuid(65534, 65534, 65534)
            try:
                probe.start(sys.argv[1])
            except probe.ProbeError as error:
                print(error)
            probe.emit(Op.FREE, slots=1)
            """,
            tmp_path / "trace",
        )
    )
    assert "Permission denied" in text
    assert "Name a directory that this user may write" in text


def test_losing_access_later_costs_events_and_nothing_else(tmp_path: Path, spawn: Spawn) -> None:
    said: dict[str, Any] = json.loads(
        output(
            spawn(
                script(
                    """
    def fill(filler):
        os.chmod(sys.argv[1], 0o500)
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 0)  # CAP_DAC_OVERRIDE goes with it.

    def relieve(filler):
        if os.getresuid()[2] == 0:
            os.setresuid(0, 0, 0)
        os.chmod(sys.argv[1], 0o700)
                    """
                ),
                tmp_path / "trace",
            )
        )
    )
    check(tmp_path / "trace", said)
