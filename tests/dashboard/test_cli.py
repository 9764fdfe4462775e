from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from slotscope.dashboard import cli


def dashboard(*words: str) -> subprocess.CompletedProcess[str]:
    code = "import typer; from slotscope.dashboard.cli import dashboard; typer.run(dashboard)"
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60
    )


def test_a_path_that_is_no_trace_is_one_line_and_exit_3(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        done = dashboard(str(path), "--no-browser")
        assert done.returncode == 3
        assert len(done.stderr.strip().splitlines()) == 1
        assert str(path) in done.stderr
        assert done.stdout == ""


def test_a_port_that_is_taken_is_told(aliased: Path) -> None:
    with socket.socket() as taken:
        taken.bind((cli.ADDRESS, 0))
        taken.listen()
        done = dashboard(str(aliased), "--no-browser", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 3
    assert "is taken" in done.stderr


def test_the_server_listens_on_this_machine_alone_and_reports_nothing() -> None:
    line = cli.arguments(Path("trace"), 1234, browser=False)
    assert "--server.address=127.0.0.1" in line
    assert "--browser.gatherUsageStats=false" in line
    assert "--server.headless=true" in line
    assert line[-2:] == ["--", "trace"]
