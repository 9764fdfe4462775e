"""Traces written by the probe, and a receiver that listens on a real port."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

RECEIVER = Path(__file__).with_name("receiver.py")
PATIENCE_S = 60


def until(true: Callable[[], bool]) -> None:
    """Wait for something that another process brings about."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, "It has not come about."
        time.sleep(0.02)


class Receiver:
    """An OTLP/HTTP receiver in a process of its own. See `receiver.py`."""

    def __init__(self, directory: Path, answers: list[dict[str, Any]]) -> None:
        self.directory, self.port = directory, 0
        self._answers = answers
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._process = subprocess.Popen(
            [sys.executable, str(RECEIVER), str(self.directory), str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._answers))
        self._process.stdin.close()
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        """Be gone, connections and all."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bodies(self) -> list[bytes]:
        """What came, uncompressed, in order."""
        return [p.read_bytes() for p in sorted(self.directory.glob("*.pb"))]

    def headers(self) -> list[dict[str, Any]]:
        """With which headers, from where and to which path."""
        return [json.loads(p.read_text()) for p in sorted(self.directory.glob("*.json"))]


class Receive(Protocol):
    """Starts a receiver with the answers that it gives first."""

    def __call__(self, *answers: dict[str, Any]) -> Receiver: ...


@pytest.fixture
def receive(tmp_path: Path) -> Iterator[Receive]:
    started: list[Receiver] = []

    def start(*answers: dict[str, Any]) -> Receiver:
        directory = tmp_path / f"received-{len(started)}"
        directory.mkdir()
        started.append(Receiver(directory, list(answers)))
        return started[-1]

    yield start
    for receiver in started:
        receiver.stop()
