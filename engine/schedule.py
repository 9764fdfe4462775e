"""Schedule: who arrives in which turn of the loop, and who is aborted in which.

A server's requests arrive when they arrive, so no two of its runs are alike. With a schedule an
engine that turns in one thread does the same again: equal flags, seed and schedule give equal
events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .engine import Engine
from .request import Request, SamplingParams
from .server.errors import ApiError
from .server.fields import Fields
from .server.sampling import read_sampling_params

Encode = Callable[[str], Sequence[int]]
"""Text to token ids."""


class ScheduleError(ValueError):
    """A schedule that can't be played. The message names file and line, and what would do."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: queued before turn `turn` of the loop, counted from 0."""

    turn: int
    request_id: str
    prompt: tuple[int, ...]
    sampling: SamplingParams
    extra_key: str = ""
    abort_turn: int | None = None  # ended before this turn, wherever it stands by then
    retract_turn: int | None = None  # if it decodes by then, it gives way as if KV were short


def read(path: Path, encode: Encode | None) -> list[Arrival]:
    """The arrivals of a file of JSON lines; empty lines are left out.

    Args:
        encode: for lines that give `text`; None where the model has no tokenizer.

    Raises:
        ScheduleError: a line is no arrival, or two have one name.
        OSError: the file can't be read.
    """
    found: dict[str, Arrival] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            arrival = _arrival(json.loads(line), f"r{number}", encode)
        except (ValueError, ApiError) as error:
            raise ScheduleError(f"{path}:{number}: {error}") from error
        if arrival.request_id in found:
            raise ScheduleError(
                f"{path}:{number}: rid {arrival.request_id!r} has come before, so it would not be "
                "clear whom an abort means. Give each request a name of its own."
            )
        found[arrival.request_id] = arrival
    return list(found.values())


def play(engine: Engine, arrivals: Sequence[Arrival]) -> list[Request]:
    """Serve a schedule in this thread, and return its requests in the order given.

    Turns in which an idle engine waits for the next arrival are left out. Before a turn arrivals
    come first, in the order given, then aborts and retractions.

    Raises:
        RequestError: one of them can't be served as asked.
    """
    requests: list[Request] = []
    acts: dict[int, list[Callable[[], None]]] = {}
    for each in arrivals:
        request = Request(each.request_id, each.prompt, each.sampling, extra_key=each.extra_key)
        requests.append(request)
        acts.setdefault(each.turn, []).append(partial(engine.submit, request))
    for each in arrivals:
        if each.abort_turn is not None:
            acts.setdefault(each.abort_turn, []).append(partial(engine.abort, each.request_id))
        if each.retract_turn is not None:
            acts.setdefault(each.retract_turn, []).append(partial(engine.retract, each.request_id))
    turn = 0
    for due in sorted(acts):
        while turn < due and not engine.scheduler.idle:
            engine.turn()
            turn += 1
        turn = due + 1
        for act in acts[due]:
            act()
        engine.turn()
    while not engine.scheduler.idle:
        engine.turn()
    return requests


def _arrival(values: object, name: str, encode: Encode | None) -> Arrival:
    if not isinstance(values, Mapping):
        raise ApiError('A line is a JSON object, as {"turn": 0, "input_ids": [1, 2]}.')
    fields = Fields(values, "the line")
    begin = _turn(fields, "turn")
    leaves = {name: _turn(fields, name) for name in ("abort_turn", "retract_turn")}
    wish = read_sampling_params(fields.mapping("sampling_params"))
    if wish.stop:
        raise ApiError("stop strings end a text, and here are only tokens. Use stop_token_ids.")
    arrival = Arrival(
        begin or 0,
        fields.text("rid") or name,
        _prompt(fields, encode),
        wish.sampling,
        fields.text("extra_key") or "",
        **leaves,
    )
    fields.close()
    for name, turn in leaves.items():
        if turn is not None and turn < arrival.turn:
            raise ApiError(
                f"{name} {turn} lies before turn {arrival.turn}, in which the request comes."
            )
    return arrival


def _turn(fields: Fields, name: str) -> int | None:
    turn = fields.integer(name)
    if turn is not None and turn < 0:
        raise fields.wrong(name, turn, "0 or more")
    return turn


def _prompt(fields: Fields, encode: Encode | None) -> tuple[int, ...]:
    text, ids = fields.text("text"), fields.integers("input_ids")
    if (text is None) == (not ids):
        raise ApiError("A line gives either text or input_ids.", param="text")
    if text is None:
        return ids
    if encode is None:
        raise ApiError("The model's folder has no tokenizer. Give input_ids.", param="text")
    return tuple(encode(text))
