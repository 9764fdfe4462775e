"""A disk that fills up under a server costs events, counted one by one, and nothing else."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import slotscope
from slotscope.instrument import layout
from tests.end_to_end import stored
from tests.end_to_end.server import PATIENCE_S, Server, run, serving, until

BURST = 1000
"""Prompts of one call, each a request with some fifteen events."""
ROOM = layout.CONTROL_SIZE + 2 * layout.SEGMENT_SIZE + (1 << 20)
"""What a traced process needs to start, and nothing for a third segment."""
FLAGS = (
    *("--mamba-radix-cache-strategy", "extra_buffer"),
    *("--max-running-requests", "64"),
    *("--max-mamba-cache-size", "200"),
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 24 MiB; skipped where it can't be mounted."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "slotscope-test", str(mount)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs needs root and a kernel that lets it")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def leave(room: int, filler: Path) -> None:
    """Take all of the disk but so many bytes."""
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    os.truncate(filler, filler.stat().st_size - room)


def burst(server: Server, first: int) -> None:
    """Many short requests at once, no two alike."""
    prompts = [[first + at % 200, at // 200 + 1, 9] for at in range(BURST)]
    body = {"input_ids": prompts, "sampling_params": {"max_new_tokens": 1, "temperature": 0}}
    reply = httpx.post(f"{server.url}/generate", json=body, timeout=PATIENCE_S)
    assert reply.status_code == 200, reply.text


def test_serving_goes_on_and_the_loss_is_told(folder: Path, small_disk: Path) -> None:
    trace, filler = small_disk / "trace", small_disk / "filler"
    leave(ROOM, filler)
    with serving(folder, trace, *FLAGS) as server:

        def lost() -> float:
            return server.metric("slotscope_events_lost_total")

        answer = server.generate([7] * 100, 8)
        bursts = 0
        while not lost():
            burst(server, bursts)
            bursts += 1
        assert server.generate([7] * 100, 8) == answer
        filler.unlink()

        def listens_again() -> bool:
            before = lost()
            server.generate([8] * 100, 8)
            return lost() == before

        until(listens_again, "events are kept again")
        total = lost()
        server.end()
    stored.collected(trace)
    assert run("collect", trace).returncode == 0
    assert stored.stored(trace) == stored.committed(trace)
    with slotscope.open(trace) as opened:
        (gaps,) = opened.sql(
            "SELECT sum(count) AS lost, bool_or(open) AS open, count(DISTINCT reason) AS reasons,"
            " any_value(reason) AS reason FROM gaps"
        ).to_pylist()
    assert gaps == {"lost": total, "open": False, "reasons": 1, "reason": "full"}
    done = run("check", trace)
    assert done.returncode == 2, done.stdout
    assert "blind" in done.stdout
