"""What can't be done is refused in one line or with a 4xx, and nothing else is harmed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest
from asking import Build, greedy, random_prompt

from tests.end_to_end import stored
from tests.end_to_end.server import run, serving
from tests.end_to_end.traced import tracing


def model_of_another_type(folder: Path, copy: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"model_type": "jamba"}))


def without_weights(folder: Path, copy: Path) -> None:
    (copy / "model.safetensors").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (model_of_another_type, "model_type 'jamba', which this engine doesn't know"),
        (without_weights, "safetensors"),
    ],
)
def test_a_folder_that_is_no_model_is_refused(
    folder: Path, tmp_path: Path, spoil: Any, said: str
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    spoil(folder, copy)
    done = run("serve", "--model-path", copy, "--port", 0, "--trace", tmp_path / "trace")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--max-mamba-cash-size", "9"), "--max-mamba-cash-size"),
        (("--without-patch", "lazy-guard"), "no patch is called lazy-guard. The patches are: "),
    ],
)
def test_an_unknown_option_is_refused(
    folder: Path, tmp_path: Path, option: tuple[str, str], said: str
) -> None:
    trace = tmp_path / "trace"
    done = run("serve", "--model-path", folder, "--port", 0, "--trace", trace, *option)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not trace.exists()


def test_calls_that_cannot_be_served_cost_nobody_else(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(folder, trace) as server:
        before = server.generate([7] * 100, 8)
        long = {"input_ids": [7] * 500, "sampling_params": {"max_new_tokens": 50}}
        for body, said in (
            (b'{"input_ids": [7, 7', "JSON"),
            (b"[1, 2]", "object"),
            (json.dumps(long).encode(), "500 tokens and at least 50 more"),
            (b'{"input_ids": [7], "sampling_params": {"max_new_tokens": 0}}', "max_new_tokens"),
            (b'{"input_ids": [99999]}', "token ids are 0 to 263"),
            (b'{"input_ids": [7], "temprature": 0}', "temprature"),
        ):
            reply = httpx.post(f"{server.url}/generate", content=body, timeout=60)
            assert reply.status_code == 400, reply.text
            assert said in reply.json()["error"]["message"]
        assert httpx.get(f"{server.url}/nowhere", timeout=60).status_code == 404
        assert server.generate([7] * 100, 8) == before
        assert server.metric("slotscope_events_lost_total") == 0
        server.end()
    stored.collected(trace)
    assert stored.stored(trace) == stored.committed(trace)
    assert run("check", trace).returncode == 0


def test_a_trace_of_an_unknown_schema_version_is_refused(build: Build, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with tracing(trace):
        build().generate([random_prompt(100, seed=1)], greedy(8))
    assert run("collect", trace).returncode == 0
    with duckdb.connect(str(trace / "live.duckdb")) as con:
        con.execute("UPDATE meta SET schema_version = 99")
    for command in ("check", "slots", "doctor", "collect"):
        done = run(command, trace)
        assert done.returncode == 3, command
        assert "schema version 99; this slotscope knows version" in done.stderr
        assert done.stderr.count("\n") == 1
    # The cure that the message names.
    (trace / "live.duckdb").unlink()
    assert run("check", trace).returncode == 0
    assert run("collect", trace).returncode == 0
    assert stored.stored(trace) == stored.committed(trace)
