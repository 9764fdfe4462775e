"""`slotscope run`: the command gets a trace directory and our place, and keeps its own manners."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slotscope.instrument.commands import run

SAY = "import os; print(os.environ['SLOTSCOPE_TRACE'], os.environ.get('SGLANG_PLUGINS'))"


def slotscope(
    *arguments: object, place: Path, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slotscope", *map(str, arguments)]
    given = os.environ | (variables or {})
    return subprocess.run(command, cwd=place, env=given, capture_output=True, text=True)


def test_a_command_finds_the_trace_directory_that_was_named(tmp_path: Path) -> None:
    done = slotscope("run", "--trace", "here", "--", sys.executable, "-c", SAY, place=tmp_path)
    assert done.stdout.split() == [str(tmp_path / "here"), "None"]
    assert (tmp_path / "here").is_dir()
    assert str(tmp_path / "here") in done.stderr


def test_without_a_name_each_run_has_a_directory_of_its_own(tmp_path: Path) -> None:
    done = slotscope("run", "--", sys.executable, "-c", SAY, place=tmp_path)
    assert Path(done.stdout.split()[0]).parent == tmp_path / "traces"


def test_options_after_the_dashes_are_the_command_s(tmp_path: Path) -> None:
    code = "import sys; print(sys.argv[1:])"
    line = ["run", "--trace", "t", "--", sys.executable, "-c", code, "--trace", "x", "--port=1"]
    done = slotscope(*line, place=tmp_path)
    assert done.stdout.strip() == "['--trace', 'x', '--port=1']"


def test_the_exit_code_is_the_command_s(tmp_path: Path) -> None:
    line = ["run", "--trace", "t", "--", sys.executable, "-c", "raise SystemExit(41)"]
    assert slotscope(*line, place=tmp_path).returncode == 41


def test_a_command_that_is_not_there_starts_nothing_and_says_how_to_write_one(
    tmp_path: Path,
) -> None:
    done = slotscope("run", "--trace", "t", "--", "no-such-program", place=tmp_path)
    assert done.returncode == 3
    assert "no-such-program is no program on the path" in done.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, None),
        ("", ""),
        ("theirs", "theirs,slotscope"),
        ("theirs, slotscope", "theirs, slotscope"),
    ],
)
def test_a_choice_of_plugins_is_widened_and_no_choice_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str | None, expected: str | None
) -> None:
    monkeypatch.delenv(run.PLUGINS, raising=False)
    if chosen is not None:
        monkeypatch.setenv(run.PLUGINS, chosen)
    variables = run.environment(tmp_path)
    assert variables.get(run.PLUGINS) == expected
    assert variables["SLOTSCOPE_TRACE"] == str(tmp_path)
