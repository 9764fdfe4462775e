"""`slotscope replay`: a schedule, played on the embedded engine without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .config import EngineConfig
from .flags import REPLAY_FLAGS, flags
from .options import configure, make_engine, offer, refusing, traced

if TYPE_CHECKING:
    from .request import Request

_HELP = """Play a schedule of requests on the embedded engine, and print the answers.

No clock and no network decides what happens: equal flags, seed and schedule
give the same events in the same order, so that `slotscope diff` finds where
another flag, patch or version first did something else.

    slotscope replay --model-path bundled --schedule s.jsonl --trace traces/a

    slotscope replay --model-path bundled --schedule s.jsonl --trace traces/b
        --without-patch lazy-finish-guard

    slotscope diff traces/a traces/b

A line of the schedule is a request, with the turn of the engine's loop in
which it comes, and maybe one in which it is aborted:

    {"turn": 3, "rid": "a", "text": "Line 1", "abort_turn": 9,
     "sampling_params": {"max_new_tokens": 40, "temperature": 0}}
"""


def replay(**given: Any) -> None:
    """Play it in this thread; the options are those of `flags(REPLAY_FLAGS)`."""
    own = {flag.name: given.pop(flag.name) for flag in REPLAY_FLAGS}
    with refusing("replay"):
        config = configure(given)
        with traced(own["trace"]):
            requests = _play(config, own["schedule"])
    for request in requests:
        typer.echo(json.dumps(_answer(request)))


def _play(config: EngineConfig, schedule: Path) -> list[Request]:
    from .schedule import play, read
    from .tokenizer import Tokenizer

    tokenizer = Tokenizer.load(config.model_path)
    arrivals = read(schedule, tokenizer.encode if tokenizer else None)
    return play(make_engine(config), arrivals)


def _answer(request: Request) -> dict[str, Any]:
    """Named as in the replies of /generate."""
    return {
        "rid": request.request_id,
        "output_ids": request.output,
        "finish_reason": request.finish_reason,
        "cached_tokens": request.usage.cached_tokens,
        "num_retractions": request.usage.retractions,
    }


offer(replay, flags(REPLAY_FLAGS), _HELP)
