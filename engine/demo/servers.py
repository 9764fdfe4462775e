"""The processes of the demo: the same commands that a user would type."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = (sys.executable, "-m", "slotscope")
"""This very installation's `slotscope`, whatever is first on the PATH."""


class DemoError(RuntimeError):
    """A process of the demo did not do its part."""


@contextmanager
def serving(trace: Path, flags: list[str], log: Path) -> Iterator[str]:
    """A server that traces into `trace`; yields its address. Told to end afterwards."""
    command = [*COMMAND, "serve", "--model-path", "bundled", "--port", "0", "--trace", str(trace)]
    with _started([*command, *flags], log) as process:
        yield _address("serve", process, log, r"is ready at (http://\S+)")


@contextmanager
def showing(trace: Path, port: int, log: Path) -> Iterator[str]:
    """The dashboard on a trace; yields its address. Told to end afterwards."""
    command = [*COMMAND, "dashboard", str(trace), "--port", str(port), "--no-browser"]
    with _started(command, log) as process:
        yield _address("dashboard", process, log, r"(http://\S+)")


def checked(trace: Path) -> str:
    """What `slotscope check --json` says of a trace."""
    done = subprocess.run(
        [*COMMAND, "check", str(trace), "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode > 2:
        raise DemoError(f"slotscope check failed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _started(command: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _address(command: str, process: subprocess.Popen[str], log: Path, pattern: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found[1]
    raise DemoError(
        f"slotscope {command} ended before it was ready: "
        f"{log.read_text().strip()[-500:] or 'it said nothing'}. Its log is {log}."
    )
