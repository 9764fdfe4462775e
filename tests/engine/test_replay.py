"""Replay: a schedule gives the same events each time; diff finds where runs first part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from asking import engine_on, greedy, random_prompt
from typer.testing import CliRunner

import slotscope
from slotscope.engine.replay import replay
from slotscope.engine.schedule import Arrival, play
from slotscope.instrument.diff import Answer, Comparison, compare
from tests.end_to_end.traced import tracing

ARRIVALS = [
    Arrival(0, "a", random_prompt(60, seed=60), greedy(20)),
    Arrival(3, "b", random_prompt(130, seed=130), greedy(30), retract_turn=12),
    Arrival(3, "c", random_prompt(40, seed=40), greedy(30), abort_turn=9),
    Arrival(6, "d", random_prompt(100, seed=100), greedy(10)),
]


def traced(checkpoint: Path, directory: Path, arrivals: list[Arrival], **knobs: object) -> Path:
    """The trace of a schedule."""
    with tracing(directory):
        play(engine_on(checkpoint, chunked_prefill_size=64, **knobs), arrivals)
    return directory


def compared(a: Path, b: Path) -> Comparison:
    """Their comparison."""
    with slotscope.open(a) as first, slotscope.open(b) as second:
        return compare(first, second)


@pytest.mark.parametrize("drafter", ["", "NEXTN"])
def test_a_schedule_gives_the_same_events_each_time(
    checkpoint: Path, tmp_path: Path, drafter: str
) -> None:
    knobs = {"speculative_algorithm": drafter}
    a = traced(checkpoint, tmp_path / "a", ARRIVALS, **knobs)
    b = traced(checkpoint, tmp_path / "b", ARRIVALS, **knobs)
    result = compared(a, b)
    assert (result.answer, result.events > 100) == (Answer.SAME, True)


def test_a_difference_is_found_where_it_begins(checkpoint: Path, tmp_path: Path) -> None:
    a = traced(checkpoint, tmp_path / "a", ARRIVALS)
    later = [*ARRIVALS[:3], Arrival(7, "d", ARRIVALS[3].prompt, greedy(10))]
    b = traced(checkpoint, tmp_path / "b", later)
    parting = compared(a, b).parting
    assert parting is not None
    first = parting.sides[0].event
    assert first is not None
    assert (first["op"], first["request_id"]) == ("request.begin", "d")


def test_replay_prints_an_answer_for_each_request(checkpoint: Path, tmp_path: Path) -> None:
    schedule = tmp_path / "s.jsonl"
    schedule.write_text(
        '{"rid": "a", "input_ids": [1, 2, 3], "sampling_params": '
        '{"max_new_tokens": 4, "temperature": 0, "ignore_eos": true}}\n'
        '{"turn": 2, "input_ids": [1, 2], "abort_turn": 2}\n'
    )
    app = typer.Typer()
    app.command()(replay)
    options = ["--model-path", str(checkpoint), "--schedule", str(schedule)]
    result = CliRunner().invoke(app, [*options, "--dtype", "float64"])
    assert result.exit_code == 0, result.output
    first, second = map(json.loads, result.stdout.splitlines())
    [plain] = engine_on(checkpoint).generate([(1, 2, 3)], greedy(4))
    assert first == {
        "rid": "a",
        "output_ids": plain.output,
        "finish_reason": "length",
        "cached_tokens": 0,
        "num_retractions": 0,
    }
    assert (second["rid"], second["finish_reason"]) == ("r2", "abort")

    schedule.write_text('{"input_ids": "x"}')
    refused = CliRunner().invoke(app, options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "s.jsonl:1" in refused.stderr
