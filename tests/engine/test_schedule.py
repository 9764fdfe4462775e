"""A schedule is read strictly, and played turn by turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import Build, greedy, random_prompt

from slotscope.engine.request import SamplingParams
from slotscope.engine.schedule import Arrival, ScheduleError, play, read


def written(path: Path, text: str) -> Path:
    """A file that holds it."""
    path.write_text(text)
    return path


def test_a_line_is_an_arrival(tmp_path: Path) -> None:
    path = written(
        tmp_path / "s.jsonl",
        '{"turn": 3, "rid": "a", "input_ids": [1, 2], "abort_turn": 9, "extra_key": "k",'
        ' "sampling_params": {"max_new_tokens": 4, "temperature": 0}}\n\n'
        '{"text": "ab", "retract_turn": 5}\n',
    )
    assert read(path, lambda text: [ord(letter) for letter in text]) == [
        Arrival(3, "a", (1, 2), SamplingParams(max_new_tokens=4, temperature=0), "k", 9),
        Arrival(0, "r3", (97, 98), SamplingParams(), retract_turn=5),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "JSON object"),
        ("{", "s.jsonl:1"),
        ('{"turn": -1, "input_ids": [1]}', "turn"),
        ('{"turn": 4, "input_ids": [1], "abort_turn": 3}', "abort_turn 3 lies before turn 4"),
        ('{"input_ids": [1], "text": "a"}', "either text or input_ids"),
        ('{"text": "a"}', "no tokenizer"),
        ('{"input_ids": [1], "abort": 3}', "Did you mean"),
        ('{"input_ids": [1], "sampling_params": {"stop": "x"}}', "stop_token_ids"),
        ('{"input_ids": [1], "sampling_params": {"top_p": 2}}', "top_p"),
        ('{"input_ids": [1], "rid": "a"}\n{"input_ids": [2], "rid": "a"}', "s.jsonl:2.*before"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ScheduleError, match=said):
        read(written(tmp_path / "s.jsonl", line), None)


def test_what_is_due_happens_before_its_turn(build: Build) -> None:
    engine = build(disable_overlap_schedule=True)
    prompts = [random_prompt(length, seed=length) for length in (20, 30)]
    first, second, late = play(
        engine,
        [
            # Serial: turn 0 prefills and hands out a token, each later one hands out another.
            Arrival(0, "a", prompts[0], greedy(50), abort_turn=5),
            Arrival(2, "b", prompts[1], greedy(6), retract_turn=4),
            Arrival(1000, "late", prompts[0], greedy(2)),
        ],
    )
    # Turn 2 prefills b alone; turn 4's retraction comes before its step, and its prefill after.
    assert (first.finish_reason, len(first.output)) == ("abort", 3)
    assert (second.finish_reason, second.usage.retractions) == ("length", 1)
    assert late.output == first.output[:2]
    [again] = engine.generate([prompts[1]], greedy(6))
    assert second.output == again.output
