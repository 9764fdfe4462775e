from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner

import slotscope
from slotscope.engine.cli import serve
from slotscope.engine.models.testing import make_checkpoint
from tests.engine.server.vocabulary import write_folder

CODE = "import typer; from slotscope.engine.cli import serve; typer.run(serve)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    return write_folder(make_checkpoint(folder, vocab_size=264, eos_token_id=256))


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process that is ready, and where."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "--port", "0", *options], stdout=subprocess.PIPE, text=True
    )
    out = process.stdout
    assert out is not None
    try:
        for line in out:
            if " is ready at " in line:
                yield process, line.split(" at ")[1].strip()
                break
        else:
            pytest.fail(f"it ended with {process.wait()} before it was ready")
    finally:
        process.kill()
        process.wait()
        out.close()


def refusal(*options: str) -> str:
    """What it says when it won't start."""
    app = typer.Typer()
    app.command()(serve)
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return result.stderr


def test_it_serves_and_traces_until_it_is_told_to_end(model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    options = ("--mamba-track-interval", "64", "--trace", str(trace))
    with running("--model-path", str(model), *options) as (process, url):
        body = {"text": "tide", "sampling_params": {"max_new_tokens": 3, "ignore_eos": True}}
        reply = httpx.post(f"{url}/generate", json=body | {"rid": "mine"}, timeout=60)
        assert reply.json()["meta_info"]["completion_tokens"] == 3
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == str(model)
        metrics = httpx.get(f"{url}/metrics").text
        assert "slotscope_events_lost_total 0.0" in metrics.splitlines()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with slotscope.open(trace) as opened:
        rows = opened.sql("SELECT client_id, request_id FROM requests").to_pylist()
        ops = opened.sql("SELECT DISTINCT op FROM events").column("op").to_pylist()
    assert rows == [{"client_id": "mine", "request_id": reply.json()["meta_info"]["request_id"]}]
    assert {"request.begin", "request.end", "allocate", "free", "forward.launch"} <= set(ops)


def test_what_cannot_be_served_is_told_in_one_line(model: Path, tmp_path: Path) -> None:
    path = ("--model-path", str(model))
    (tmp_path / "file").write_text("")
    huge = ("--context-length", "2147483647", "--max-running-requests", "2147483647", "--port", "0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = {
            ("--model-path", "/nowhere"): "/nowhere is no folder",
            ("--model-path", str(tmp_path)): "config.json",
            (*path, "--without-patch", "no-such"): "no patch is called no-such. The patches are:",
            (*path, "--mamba-radix-cache-strategy", "best"): "must be one of: no_buffer",
            (*path, "--device", "foo"): "--device is 'foo', but must be cpu",
            (*path, "--mamba-track-interval", "9" * 20): "must be 1 to 2147483647",
            (*path, *huge): "Lower --max-total-tokens",
            (*path, "--port", port): f"can't listen on 127.0.0.1 port {port}",
            (*path, "--port", "70000"): "--port is 70000",
            (*path, "--port", "0", "--trace", str(tmp_path / "file")): str(tmp_path / "file"),
        }
        for options, said in cases.items():
            error = refusal(*options)
            assert said in error, (options, error)
            assert error.startswith("slotscope serve: ")
            assert error.count("\n") == 1, error


def test_an_unknown_flag_is_refused(model: Path) -> None:
    assert "--max-mamba-cash-size" in refusal(
        "--model-path", str(model), "--max-mamba-cash-size", "8"
    )


def test_the_command_line_costs_no_torch() -> None:
    """`slotscope --help` imports every command."""
    code = (
        "import sys, slotscope.engine.cli; print(sorted({'torch', 'uvicorn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
