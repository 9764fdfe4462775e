"""Patterns: cycles, counts up and down, calls and answers. The next line follows from the state."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import words


def write(rng: Random) -> str:
    """One pattern carried on for 400 to 1500 bytes."""
    kind: Callable[[Random], list[str]] = rng.choice((_lamp, _count, _countdown, _call, _march))
    return "\n".join(kind(rng)) + "\n"


def _lamp(rng: Random) -> list[str]:
    cycle = rng.sample(words.COLOURS, rng.randint(2, 5))
    name = rng.choice(words.PORTS)
    out = [f"The lamp at {name} turns: {', '.join(cycle)}."]
    start = rng.choice((1, rng.randint(1, 60)))
    for beat in range(rng.randint(15, 45)):
        out.append(f"Turn {start + beat}: the lamp shows {cycle[beat % len(cycle)]}.")
    return out


def _count(rng: Random) -> list[str]:
    step, start = rng.choice((1, 1, 1, 2, 5, 10)), rng.randint(0, 99)
    thing = rng.choice(words.GOODS)
    out = [f"Counting {thing}s by {step}."]
    for row in range(rng.randint(6, 14)):
        first = start + row * 6 * step
        out.append(", ".join(str(first + i * step) for i in range(6)) + ";")
    return out


def _countdown(rng: Random) -> list[str]:
    colour, good, where = (
        rng.choice(words.COLOURS),
        rng.choice(words.GOODS),
        rng.choice(words.PLACES),
    )
    top = rng.randint(6, 20)
    out = []
    for number in range(top, 0, -1):
        now = _some(number, colour, good)
        out.append(
            f"{now.capitalize()} at {where}; one was sold, and then there were {number - 1}."
        )
    return [*out, f"No {colour} {good} at {where}; that is the end of the song."]


def _some(number: int, colour: str, good: str) -> str:
    return f"{words.NUMBERS[number]} {colour} {good}{'s' if number > 1 else ''}"


def _call(rng: Random) -> list[str]:
    leader, crew = rng.sample(words.FIRST, 2)
    calls = rng.sample(words.CODES, rng.randint(3, 5))
    answers = rng.sample(words.CARGO, len(calls))
    out = [f"{leader} calls and {crew} answers."]
    for beat in range(rng.randint(10, 26)):
        call, answer = calls[beat % len(calls)], answers[beat % len(calls)]
        out.append(f"{leader}: {call}, {beat + 1}. {crew}: {answer}, {beat + 1}.")
    return out


def _march(rng: Random) -> list[str]:
    names = rng.sample(words.FIRST, 3)
    loads = rng.sample(words.CARGO, 4)
    out = [f"The march of {names[0]}, {names[1]} and {names[2]}."]
    for step in range(rng.randint(12, 36)):
        out.append(f"Step {step + 1}: {names[step % 3]} carries {loads[step % 4]}.")
    return out
