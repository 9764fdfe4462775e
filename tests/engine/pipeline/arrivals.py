"""Requests that come while others run, so that micro-batches are recomposed all the time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from asking import greedy, random_prompt

from slotscope.engine.engine import Engine
from slotscope.engine.request import Request

Arrival = tuple[int, Request]
"""A turn of the loop, and who comes then."""


def mixed(count: int, *, tokens_max: int = 14, seed: int = 0) -> list[Arrival]:
    """Requests of all lengths, some with a prompt that was there before, one to three a turn."""
    draw = random.Random(seed)
    turn, arrivals = 0, []
    for number in range(count):
        length, of = draw.randrange(2, 90), draw.randrange(count)
        if number % 4 == 3:
            length, of = 80, 0
        request = Request(
            f"a{number}", random_prompt(length, of), greedy(draw.randrange(1, tokens_max))
        )
        arrivals.append((turn, request))
        turn += draw.random() < 0.4
    return arrivals


def serve(engine: Engine, arrivals: Sequence[Arrival]) -> list[tuple[list[int], int, int]]:
    """(output, verifies, accepted tokens) of each request, in the order of arrival."""
    waiting, turn = list(arrivals), 0
    while waiting or not engine.scheduler.idle:
        while waiting and waiting[0][0] <= turn:
            engine.submit(waiting.pop(0)[1])
        engine.turn()
        turn += 1
    requests = [request for _, request in arrivals]
    return [(r.output, r.usage.verify_count, r.usage.accept_count) for r in requests]
