"""The SQL detectors against an independent state machine, on random serving and on its mutations.

Each example is many histories: each is a process of one trace, so one check judges them all.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from histories import connect, read
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from serving import Serving
from slot_machine import contradictions
from verdicts import everything

from slotscope.instrument import check

HISTORIES = 25
few = settings(
    max_examples=4,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # a seed says it all; there is nothing to shrink
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.lists(st.integers(0, 2**32), min_size=HISTORIES, max_size=HISTORIES, unique=True)

MUTATIONS = {
    "a commit is lost": (r"\d+:r\d+\.\d+@\d+\+\d+", ""),
    "a commit is said twice": (r"\d+:r\d+\.\d+@\d+\+\d+", r"\g<0> \g<0>"),
    "a commit moves too far": (r"(\d+:r\d+\.\d+@\d+\+\d+)", r"\1>99"),
    "a track is lost": (r"\d+:(r\d+\.)?\d+\^\d+%\d+", ""),
    "a free is lost": (r"r\d+-\d+", ""),
    "a free is said twice": (r"(r\d+)?-\d+", r"\g<0> \g<0>"),
    "an allocation is lost": (r"r\d+\+(live|keep|spare)\d+", ""),
    "a donation under another depth": (r"(\d+)!\d+n(\d+)%8", r"\1!4000n\2%8"),
    "a suppressed donation is made": (r"(\d+!\d+)%8x", r"\1n99%8"),
    "a label off the grid": (r"(\d+!\d+n\d+)%8", r"\1%4096"),
    "a hit on another slot": (r"(r\d+\.n\d+)\?\d+@", r"\1?7@"),
    "a restore from another slot": (r"(\d+:\d+)<\d+@", r"\1<7@"),
    "an advance of another slot": (r"(\d+:)\d+(@\d+>)", r"\g<1>5\2"),
    "an eviction of another slot": (r"(n\d+)-\d+", r"\1-6"),
    "a clear where there was none": (r"(\d+:)(\d+)@\d+>\d+", r"\1\2@0 \g<0>"),
}
ALWAYS_FOUND = {
    "a commit is said twice": "D4",
    "a commit moves too far": "D4",
    "a free is said twice": "D10",
    "a donation under another depth": "D1",
    "a label off the grid": "D1",
}


def serving(seed: int) -> str:
    return Serving(Random(seed)).run(turns=30)


def told(histories: list[str]) -> list[set[tuple[str, int]]]:
    """For each history what the detectors say: detector, and where in the line."""
    with connect(" | ".join(histories)) as con:
        report = check.run(con)
    said: list[set[tuple[str, int]]] = [set() for _ in histories]
    for finding in everything(report.findings):
        last = finding.witness[-1]
        said[finding.process].add((finding.detector, last & ((1 << 40) - 1)))
    return said


def mutated(seed: int, mutation: str) -> str | None:
    """A legal history with one act changed, if it has such an act."""
    pattern, change = MUTATIONS[mutation]
    tokens = serving(seed).split()
    places = [at for at, token in enumerate(tokens) if re.match(pattern, token)]
    if not places:
        return None
    at = Random(seed).choice(places)
    tokens[at] = re.sub(pattern, change, tokens[at], count=1)
    return " ".join(filter(None, tokens))


@few
@given(seeds)
def test_legal_serving_is_clean(drawn: list[int]) -> None:
    histories = [serving(seed) for seed in drawn]
    assert [contradictions(read(history)[0]) for history in histories] == [set()] * len(drawn)
    assert told(histories) == [set()] * len(drawn)


@pytest.mark.parametrize("mutation", MUTATIONS)
@settings(few, max_examples=1)
@given(seeds)
def test_a_mutation_is_judged_as_the_machine_judges_it(mutation: str, drawn: list[int]) -> None:
    histories = [line for seed in drawn if (line := mutated(seed, mutation)) is not None]
    expected = [contradictions(read(history)[0]) for history in histories]
    assert told(histories) == expected
    assert any(expected)
    if always := ALWAYS_FOUND.get(mutation):
        assert all(always in {detector for detector, _ in said} for said in expected)
