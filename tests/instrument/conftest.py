"""Fixtures: a trace directory, a probe that writes into it, and processes of one's own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import Spawn

from slotscope.instrument import probe


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Path]:
    """This process is traced into this directory, without a collector."""
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    yield directory
    probe.stop()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Starts a Python process that runs some code with some arguments; ends with the test."""
    children: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        script = tmp_path / f"child{len(children)}.py"
        script.write_text(textwrap.dedent(code))
        child = subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()
