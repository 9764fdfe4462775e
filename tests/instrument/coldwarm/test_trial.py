"""Verdicts on a server that says what the test wants: what no right engine can be made to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from slotscope.instrument.coldwarm.errors import ColdwarmError
from slotscope.instrument.coldwarm.grid import Geometry, Turn, cells
from slotscope.instrument.coldwarm.run import run
from slotscope.instrument.coldwarm.server import Answer, Prompt
from slotscope.instrument.coldwarm.trial import Player, Result

GEOMETRY = Geometry(1, 64, 64, "")


@dataclass
class Scripted:
    """Answers with the next (token, logprob, cached tokens) of its script."""

    script: Sequence[tuple[int, float, int]]
    speaks: str = "a script"
    info: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def prompt(self, tokens: int, seed: int) -> Prompt:
        return (7,) * tokens

    def ask(self, prompt: Prompt, tokens: int, salt: str) -> Answer:
        token, logprob, cached = self.script[len(self.asked)]
        self.asked.append(salt)
        return Answer(f"r{len(self.asked)}", (token,), (logprob,), len(prompt), cached)

    def extended(self, prompt: Prompt, answer: Answer) -> Prompt:
        assert isinstance(prompt, tuple)
        return (*prompt, *(int(token) for token in answer.tokens))

    def flush(self) -> None:
        self.asked.append("flush")


def play(server: Scripted, turn: Turn = Turn.REPEAT, *, flushes: bool = False) -> Result:
    [cell] = cells([64], offsets=[1], turns=[turn], prompt=64, interval=64, answer=1)
    return Player(server, GEOMETRY, 1e-2, flushes).play(cell)


@pytest.mark.parametrize(
    ("warm", "again", "verdict", "why"),
    [
        ((5, -0.1, 64), (5, -0.1, 0), "equal", ""),
        ((6, -0.1, 64), (5, -0.1, 0), "differs", "token 1 of 1 differs"),
        ((5, -0.2, 64), (5, -0.1, 0), "differs", "logprobs lie up to 0.1 apart"),
        ((6, -0.2, 64), (6, -0.2, 0), "unstable", "two cold answers differ"),
        ((5, -0.1, 64), (5, -0.2, 0), "unstable", "two cold answers differ"),
        ((5, -0.1, 0), (5, -0.1, 0), "cold", "nothing came from the cache"),
    ],
)
def test_warm_is_judged_only_where_cold_is_the_same_twice(
    warm: tuple[int, float, int], again: tuple[int, float, int], verdict: str, why: str
) -> None:
    result = play(Scripted([(5, -0.1, 0), warm, again]))
    assert result.verdict == verdict
    assert why in result.why


def test_two_tokens_as_likely_as_each_other_are_a_tie() -> None:
    assert play(Scripted([(5, -0.9, 0), (6, -0.905, 64), (5, -0.9, 0)])).verdict == "tie"


def test_the_donor_and_the_warm_request_alone_share_a_salt() -> None:
    server = Scripted([(5, -0.1, 0)] * 2 + [(5, -0.1, 64)] + [(5, -0.1, 0)])
    assert play(server, Turn.CONTINUE).requests == {
        "donor": "r1",
        "cold": "r2",
        "warm": "r3",
        "again": "r4",
    }
    donor, cold, warm, again = server.asked
    assert donor == warm
    assert len({donor, cold, again}) == 3


def test_a_cold_answer_from_a_cache_ends_it_all() -> None:
    with pytest.raises(ColdwarmError, match="ignores cache salts"):
        play(Scripted([(5, -0.1, 0), (5, -0.1, 64), (5, -0.1, 64)]))
    server = Scripted([(0, 0, 0), (5, -0.1, 64)])
    with pytest.raises(ColdwarmError, match="somebody else fills it"):
        play(server, flushes=True)


def test_the_first_failure_ends_a_run_and_keeps_what_came_before() -> None:
    server = Scripted([(5, -0.1, 0), (5, -0.1, 64), (5, -0.1, 0), (5, -0.1, 64)])
    plan = cells([64], offsets=[1, 2, 3], turns=[Turn.REPEAT], interval=64, answer=1)
    came: list[Result] = []
    with pytest.raises(ColdwarmError):
        came.extend(run(Player(server, GEOMETRY, 1e-2).play, plan))
    assert len(server.asked) == 4
