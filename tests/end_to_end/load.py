"""A mixed load: requests that arrive, are aborted and stop at random, all by one seed.

Prompts are beginnings of a few documents, so that requests share prefixes of many depths.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from random import Random

from slotscope.engine.engine import Engine
from slotscope.engine.request import Request, SamplingParams

VOCABULARY = 100
DOCUMENTS = 3
LENGTHS = (40, 63, 64, 65, 100, 127, 128, 150, 191, 193, 230)
STOP_TOKENS = 3


@dataclass(frozen=True)
class Asked:
    """One request of the load, and the turns of the loop at which its client acts."""

    prompt: tuple[int, ...]
    sampling: SamplingParams
    arrives: int
    leaves: int | None  # aborted before this turn, if it still runs


def make_load(seed: int, count: int = 10) -> list[Asked]:
    """`count` requests, in the order of arrival."""
    draw = Random(seed)
    documents = [
        tuple(draw.randrange(1, VOCABULARY) for _ in range(max(LENGTHS))) for _ in range(DOCUMENTS)
    ]
    asked, turn = [], 0
    for at in range(count):
        turn += draw.choice((0, 0, 1, 2, 9))
        leaves = turn + draw.randrange(16) if at % 4 == 1 else None
        stops = [draw.randrange(1, VOCABULARY) for _ in range(STOP_TOKENS)]
        sampling = SamplingParams(
            max_new_tokens=40 if leaves is not None else draw.choice((1, 2, 20, 40, 66)),
            temperature=0,
            ignore_eos=True,
            stop_token_ids=tuple(stops) if at % 4 == 3 else (),
        )
        prompt = draw.choice(documents)[: draw.choice(LENGTHS)]
        asked.append(Asked(prompt, sampling, turn, leaves))
    return asked


def run_load(engine: Engine, load: list[Asked]) -> list[Request]:
    """Serve it, turn by turn, in this thread. Returns the requests as they ended."""
    requests = [Request(f"r{at}", each.prompt, each.sampling) for at, each in enumerate(load)]
    arrivals: dict[int, list[Request]] = defaultdict(list)
    departures: dict[int, list[Request]] = defaultdict(list)
    for request, each in zip(requests, load, strict=True):
        arrivals[each.arrives].append(request)
        if each.leaves is not None:
            departures[each.leaves].append(request)
    turn = 0
    while turn <= max(arrivals) or not engine.scheduler.idle:
        for request in arrivals[turn]:
            engine.submit(request)
        for request in departures[turn]:
            engine.abort(request.request_id)
        engine.turn()
        turn += 1
    return requests
