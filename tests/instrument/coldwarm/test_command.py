"""The command against real servers: what it prints, writes and exits with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotscope.engine.server import app
from slotscope.instrument.cli import main
from tests.end_to_end.server import COMMAND, PATIENCE_S
from tests.end_to_end.traced import tracing
from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import serving
from tests.instrument.coldwarm.conftest import Serve, address
from tests.instrument.coldwarm.relay import relaying

GRID = ("--answer", "6", "--offsets", "-1,1,16")
BUG = {"without_patch": ("prefill-donation-guard",), "fail_spare_slots": True}

TWO_CELLS = 1 + 2 * 3 + 1
"""Requests: one to see what the server speaks, two repeats, and one of the third."""

Told = tuple[dict[str, Any], str]
Coldwarm = Callable[..., Told]


@pytest.fixture
def coldwarm(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Coldwarm:
    """The command on a server: its JSON and what it printed; its exit code is checked."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(url: str, *arguments: object, code: int = 0) -> Told:
        file = tmp_path / "told.json"
        line = ["slotscope", "coldwarm", url, "--json", str(file), *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return json.loads(file.read_text()) if file.exists() else {}, out + err

    return run


def verdicts(told: dict[str, Any]) -> list[str]:
    return [cell["verdict"] for cell in told["cells"]]


@pytest.mark.parametrize("spares_fail", [False, True])
def test_a_right_engine_answers_from_its_cache_what_it_answers_without(
    serve: Serve, coldwarm: Coldwarm, spares_fail: bool
) -> None:
    with serve(fail_spare_slots=spares_fail) as url:
        told, printed = coldwarm(url, *GRID, "--concurrency", 2, "--tolerance", 1e-9)
    judged = [verdict for verdict in verdicts(told) if verdict != "cold"]
    assert set(judged) == {"equal"}
    assert len(judged) >= 5
    assert told["geometry"] == {
        "page_size": 1,
        "interval": 64,
        "state_chunk": 64,
        "strategy": "extra_buffer_lazy",
    }
    for cell in told["cells"]:
        assert cell["cached"] <= cell["deepest"]
        assert cell["finish"] == cell["cell"]["prompt_tokens"] + cell["cell"]["donor_tokens"]
    assert told["cells"][-1]["cached"] == 128  # the crossing was settled well before the finish
    assert f"equal cold ones in all {len(judged)} cells" in printed


def test_a_checkpoint_given_away_too_early_is_found_and_its_slot_named(
    serve: Serve, coldwarm: Coldwarm, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    with tracing(trace), serve(**BUG) as url:
        told, printed = coldwarm(url, *GRID, "--trace", trace, code=1)
    [wrong] = [cell for cell in told["cells"] if cell["verdict"] == "differs"]
    assert (wrong["cell"]["turn"], wrong["prompt"], wrong["cached"]) == ("repeat", 127, 64)
    [finding] = wrong["findings"]
    assert finding["detector"] == "D1"
    assert finding["request_id"] == wrong["requests"]["donor"]
    assert f"D1 depth: slot {finding['slot']}" in printed
    assert "The cache changes answers: 1 of" in printed
    assert all(cell["findings"] == [] for cell in told["cells"] if cell is not wrong)


def test_emptying_the_cache_finds_the_same(serve: Serve, coldwarm: Coldwarm) -> None:
    with serve(**BUG) as url:
        told, _ = coldwarm(url, "--answer", 6, "--offsets=-1", "--flush", code=1)
    assert verdicts(told) == ["differs", "equal"]


def test_a_server_that_ignores_salts_is_refused(coldwarm: Coldwarm) -> None:
    with serving(Parrot(), None) as client:  # serves 8 tokens "from its cache", always
        told, printed = coldwarm(address(client), "--interval", 64, code=2)
    assert told["cells"] == []
    assert "served 8 of its 126 tokens from the cache: the server ignores cache salts" in printed
    assert "--flush" in printed


@pytest.mark.parametrize("bug", [False, True])
def test_openai_s_api_alone_does(
    serve: Serve, coldwarm: Coldwarm, monkeypatch: pytest.MonkeyPatch, bug: bool
) -> None:
    only = [route for route in app.ROUTES if route.path.startswith("/v1/")]
    monkeypatch.setattr(app, "ROUTES", only)
    with serve(**BUG if bug else {}) as url:
        grid = ("--answer", 6, "--offsets=-1,1", "--turn", "repeat", "--interval", 64)
        told, _ = coldwarm(url, *grid, code=int(bug))
    assert told["speaks"] == "OpenAI's /v1/completions, text"
    assert verdicts(told) == ["differs" if bug else "equal", "equal"]
    assert [cell["prompt"] for cell in told["cells"]] == [127, 129]


def test_a_server_that_never_was_is_told(coldwarm: Coldwarm) -> None:
    _, printed = coldwarm("http://127.0.0.1:9", code=2)
    assert "http://127.0.0.1:9/server_info does not answer" in printed
    assert "Traceback" not in printed


def test_what_was_done_before_a_server_died_is_kept(serve: Serve, coldwarm: Coldwarm) -> None:
    with serve() as url, relaying(url, requests=TWO_CELLS) as relay:
        told, printed = coldwarm(relay.url, *GRID, code=2)
    assert verdicts(told) == ["equal", "equal"]
    assert "Only 2 of 6 cells were asked" in printed
    assert "does not answer" in printed


def test_ctrl_c_keeps_what_was_done(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    with serve() as url, relaying(url, requests=TWO_CELLS, hangs=True) as relay:
        line = [*COMMAND, "coldwarm", relay.url, *GRID, "--json", str(file)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
            assert relay.spent.wait(PATIENCE_S)
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert verdicts(json.loads(file.read_text())) == ["equal", "equal"]
    assert "Only 2 of 6 cells were asked: interrupted." in " ".join(printed.split())


def test_a_cell_that_the_server_refuses_leaves_the_others(serve: Serve, coldwarm: Coldwarm) -> None:
    with serve(context_length=140) as url:
        grid = ("--answer", 6, "--offsets=-1,32", "--turn", "repeat")
        told, _ = coldwarm(url, *grid)
    assert verdicts(told) == ["equal", "refused"]
    assert "the context holds 140" in told["cells"][1]["why"]


def test_without_a_cache_nothing_is_judged(serve: Serve, coldwarm: Coldwarm) -> None:
    with serve(disable_radix_cache=True) as url:
        told, printed = coldwarm(url, "--answer", 2, "--offsets=1", code=2)
    assert verdicts(told) == ["cold", "cold"]
    assert "Nothing could be judged." in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("localhost:30000",), "is no address of a server"),
        (("http://127.0.0.1:9", "--flush", "--concurrency", "2"), "leave --flush out"),
    ],
)
def test_bad_usage_names_the_cure(
    coldwarm: Coldwarm, arguments: tuple[str, ...], said: str
) -> None:
    _, printed = coldwarm(*arguments, code=3)
    assert said in printed
