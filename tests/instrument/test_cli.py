"""The command line: what it prints and exits with; an error is one line with a cure."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

from slotscope.instrument import probe
from slotscope.instrument.cli import main
from slotscope.instrument.event import Op, Role

COMMANDS = ("check", "sql", "slots", "diff", "coldwarm", "doctor", "collect")


class Run(Protocol):
    def __call__(self, *arguments: object, code: int = 0, stdin: str = "") -> tuple[str, str]: ...


@pytest.fixture
def slotscope(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command, as a user calls it: what it printed, and its errors."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object, code: int = 0, stdin: str = "") -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["slotscope", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return out, err

    return run


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cli") / "trace"
    probe.start(directory, collector=False)
    probe.hook("Pool.alloc", [Op.ALLOCATE], live=True)
    probe.hook("Pool.free", [Op.FREE], live=False)
    number = probe.request("[red]r1[/red]")
    probe.emit(Op.ALLOCATE, slots=[7], request=number, role=Role.LIVE)
    probe.emit(Op.CLEAR, slots=[7], depth=0, request=number)
    probe.emit(Op.ADVANCE, slots=[7], depth=12, request=number)
    probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])
    probe.stop()
    return directory


def test_help_teaches_and_names_every_command(slotscope: Run) -> None:
    out, _ = slotscope("--help")
    for command in (*COMMANDS, "serve", "demo", "dashboard"):
        assert command in out
    for command in COMMANDS:
        page, _ = slotscope(command, "--help")
        assert f"slotscope {command}" in page
        assert "traces/today" in page


def test_help_loads_no_engine(
    slotscope: Run,
) -> None:
    code = (
        "import sys; sys.argv = ['slotscope', '--help']\n"
        "from slotscope.instrument.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'streamlit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek", "x"], "No such command 'chek'. Did you mean 'check'?"),
        (["check"], "Missing argument 'TRACE'. See slotscope check --help."),
        (
            ["check", "/nonexistent"],
            "/nonexistent is no directory and no packed trace. Give the directory that",
        ),
        (["check", "/nonexistent", "--json", "--junit"], "--json and --junit exclude each other"),
        (["sql", "/nonexistent", "SELECT 1"], "/nonexistent is no directory"),
        (["slots", "/nonexistent", "seven"], "valid integer"),
        (["doctor", "/nonexistent"], "/nonexistent is no directory"),
        (["collect", "/nonexistent"], "can't be collected"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_3(
    slotscope: Run, arguments: list[str], said: str
) -> None:
    out, err = slotscope(*arguments, code=3)
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("slotscope: ")
    assert said in err


def test_sql_prints_tables_csv_and_json(slotscope: Run, trace: Path) -> None:
    query = "SELECT slot, depth, request_id FROM history(7) WHERE depth > 0"
    out, _ = slotscope("sql", trace, query)
    assert out.split() == ["slot", "depth", "request_id", "7", "12", "[red]r1[/red]"]
    out, _ = slotscope("sql", trace, query, "--format", "csv")
    assert out.splitlines() == ['"slot","depth","request_id"', '7,12,"[red]r1[/red]"']
    out, _ = slotscope("sql", trace, "-", "--format", "json", stdin=query)
    assert json.loads(out) == {"slot": 7, "depth": 12, "request_id": "[red]r1[/red]"}
    out, _ = slotscope("sql", trace, "FROM leases", "--format", "csv")
    assert '"[1]"' in out


def test_sql_without_a_query_lists_what_can_be_asked(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("sql", trace)
    for name in ("events", "leases", "spans", "gaps", "token_hash"):
        assert name in out


def test_sql_says_how_many_rows_it_left_out(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("sql", trace, "FROM range(10)", "--limit", 3)
    assert "7 more rows" in out
    _, err = slotscope("sql", trace, "FROM range(10)", "--limit", -3, code=3)
    assert "--limit" in err


def test_what_clients_wrote_can_not_steer_the_terminal(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("sql", trace, "SELECT '\x1b[2J\u202e ok\n[red]' AS 'a\x1b[2Jb'")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert r"\x1b[2J\u202e ok" in out
    assert "[red]" in out


def test_columns_of_one_name_are_all_told(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("sql", trace, "SELECT 1 AS a, 2 AS a", "--format", "json")
    assert json.loads(out) == {"a": 1, "a_1": 2}


def test_what_is_too_wide_for_the_screen_is_one_line_for_each_row(
    slotscope: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out, _ = slotscope("sql", trace, "FROM leases")
    (line,) = out.splitlines()
    assert "slot=7 generation=1 requests=[1]" in line
    assert "freed_order" not in line, "a null"
    out, _ = slotscope("slots", trace)
    assert out.split()[:4] == ["process", "pool", "slot", "leases"]


def test_the_readme_asks_what_can_be_answered(slotscope: Run, trace: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.+?)```", readme, re.DOTALL)
    exec(example.replace("traces/a", str(trace)), {})
    queries = re.findall(r'slotscope sql TRACE "(.+?)"', readme)
    assert queries
    for query in queries:
        slotscope("sql", trace, query)


def test_a_bad_query_is_one_line(slotscope: Run, trace: Path) -> None:
    _, err = slotscope("sql", trace, "SELECT nothing FROM nowhere", code=3)
    assert err.startswith("slotscope: Catalog Error: Table with name nowhere")
    assert err.count("\n") == 1


def test_slots_lists_them_and_tells_one(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("slots", trace, "--format", "json")
    (row,) = map(json.loads, out.splitlines())
    assert (row["slot"], row["state"], row["depth"]) == (7, "live", 12)
    out, _ = slotscope("slots", trace, 7)
    assert "allocate" in out
    assert "advance" in out
    _, err = slotscope("slots", trace, 8, code=3)
    assert "No event names slot 8 of pool 0." in err


def test_collect_stores_a_trace(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("collect", trace)
    assert "3 events stored in" in out
    out, _ = slotscope("collect", trace)
    assert "0 events stored in" in out


def test_doctor_tells_what_is_live_lost_and_blind(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("doctor")
    assert "duckdb 2" in out
    out, _ = slotscope("doctor", trace)
    assert "ended" in out
    assert "Pool.free" in out
    assert "refused" in out
    assert "blind: no process reports" in out


def test_check_is_blind_where_hooks_are_dead(slotscope: Run, trace: Path) -> None:
    out, _ = slotscope("check", trace, "--json", code=2)
    json.loads(out)


def test_the_module_runs_as_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slotscope.instrument", "check"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == "slotscope: Missing argument 'TRACE'. See slotscope check --help.\n"


def test_diff_shows_where_two_traces_part(slotscope: Run, trace: Path, tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("live", "again", "keep", "empty")}
    for name, path in paths.items():
        probe.start(path, collector=False)
        role = Role.KEEP if name == "keep" else Role.LIVE
        if name != "empty":
            probe.emit(Op.ALLOCATE, slots=[7], request=probe.request("r1"), role=role)
        probe.stop()
    live = paths["live"]
    assert slotscope("diff", live, paths["again"])[0].startswith(
        "Same, times aside. Events in both: 1."
    )
    out, _ = slotscope("diff", live, paths["keep"], code=1)
    assert out.startswith("They part at event 0 of process 0, in role.")
    assert "role=live" in out.split("B, ")[0]
    told = json.loads(slotscope("diff", live, paths["keep"], "--json", code=1)[0])
    assert told["columns"] == ["role"]
    assert "no events" in slotscope("diff", live, paths["empty"], code=2)[0]
    assert "lost 2 events in 1 gaps" in slotscope("diff", live, trace, code=2)[0]
    assert "no directory" in slotscope("diff", live, tmp_path / "none", code=3)[1]
