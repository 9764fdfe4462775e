"""Spawn: start a trace's collector, so that it outlives whoever asked for it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

LOCK_NAME = "collector.lock"
LOG_NAME = "collector.log"
RESPAWN_S_MAX = 60.0


def locked(directory: Path) -> bool:
    """A collector runs on this trace."""
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def start(directory: Path) -> None:
    """Start a collector in a session of its own. If one runs already, the new one leaves at once.

    The shell in between ends at once, so that the collector is nobody's child: the engine has
    nothing to wait for, and a signal to the engine's group does not reach it.

    Raises:
        OSError: no process can be started.
    """
    command = [sys.executable, "-m", "slotscope.instrument.collector", str(directory)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with open(os.open(directory / LOG_NAME, flags, 0o600), "ab") as log:
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=True,
        )


class Keeper:
    """Starts the collector, and again if it was killed; each time it waits twice as long."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pause_s = 1.0
        self._next_s = 0.0

    def check(self) -> None:
        """Start one if none runs. Never raises: the trace is whole without a collector."""
        now = time.monotonic()
        try:
            if now < self._next_s or locked(self._directory):
                return
            self._next_s = now + self._pause_s
            self._pause_s = min(self._pause_s * 2, RESPAWN_S_MAX)
            start(self._directory)
        except (OSError, subprocess.SubprocessError):
            return
