"""Harbour logs: numbered lines, a clock, a tally of ships, a rota, and a code word to keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from . import words


@dataclass(slots=True)
class _Harbour:
    """What the log must remember from line to line."""

    rng: Random
    line: int
    minutes: int
    rota: list[str]
    inside: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    watch: int = 0


def write(rng: Random) -> str:
    """A log of one day, 500 to 2500 bytes."""
    port, keeper = rng.choice(words.PORTS), f"{rng.choice(words.FIRST)} {rng.choice(words.LAST)}"
    code = rng.choice(words.CODES)
    harbour = _open(rng)
    first = harbour.line
    day = f"{rng.randint(1, 28)} {rng.choice(words.MONTHS)}"
    out = [
        f"Harbour log of Port {port}, {day}. Keeper: {keeper}. Code word: {code}.",
        f"Rota: {', '.join(harbour.rota)}. In port: {', '.join(harbour.inside)}.",
    ]
    every = rng.choice((4, 5, 6))  # the code word is asked for at this period
    for count in range(1, rng.randint(7, 30)):
        out.append(_entry(harbour, code if count % every == 0 else ""))
    total = harbour.line - first
    out.append(
        f"Log closed at line {harbour.line} after {total} lines. Keeper: {keeper}."
        f" Code word: {code}."
    )
    return "\n".join(out) + "\n"


def _open(rng: Random) -> _Harbour:
    ships = [f"{rng.choice(words.KINDS)} {ship}" for ship in rng.sample(words.SHIPS, 9)]
    split = rng.randint(2, 5)
    return _Harbour(
        rng=rng,
        line=rng.choice((1, 1, 1, rng.randint(2, 90))),
        minutes=60 * rng.randint(4, 9) + 5 * rng.randint(0, 11),
        rota=rng.sample(words.FIRST, 3),
        inside=ships[:split],
        outside=ships[split:],
    )


def _entry(harbour: _Harbour, code: str) -> str:
    """The next line; every third one is a change of watch, whatever else happens."""
    harbour.minutes += 5 * harbour.rng.randint(1, 4)
    clock = f"{harbour.minutes // 60 % 24:02d}:{harbour.minutes % 60:02d}"
    head = f"Line {harbour.line}. {clock}. "
    harbour.line += 1
    if code:
        return f"{head}Password given: {code}."
    if harbour.line % 3 == 0:
        leaving = harbour.rota[harbour.watch % 3]
        harbour.watch += 1
        return f"{head}Watch: {leaving} to {harbour.rota[harbour.watch % 3]}."
    return head + _movement(harbour)


def _movement(harbour: _Harbour) -> str:
    rng = harbour.rng
    arrives = bool(harbour.outside) and (len(harbour.inside) < 2 or rng.random() < 0.5)
    if arrives:
        ship = harbour.outside.pop(rng.randrange(len(harbour.outside)))
        harbour.inside.append(ship)
        text = f"The {ship} came in with {rng.choice(words.CARGO)}."
    else:
        ship = harbour.inside.pop(0)  # first in, first out: the log itself says who leaves next
        harbour.outside.append(ship)
        text = f"The {ship} went out."
    return f"{text} Ships: {len(harbour.inside)}."
