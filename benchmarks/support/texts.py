"""Prompts for benchmarks: texts of the kind that the bundled model knows, one byte a token."""

from __future__ import annotations

from slotscope.engine.bundled.corpus import HELD_OUT, document, encode


def text(number: int, tokens: int) -> tuple[int, ...]:
    """The first `tokens` tokens of text `number`, which training has not seen."""
    found: list[int] = []
    at = HELD_OUT + number
    while len(found) < tokens:
        found += encode(document(at))
        at += 1_000_000
    return tuple(found[:tokens])


def distinct(count: int, tokens: int, first: int = 0) -> list[tuple[int, ...]]:
    """So many texts, no two with the same first 48 tokens: they share no state chunk."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    number = first
    while len(found) < count:
        prompt = text(number, tokens)
        found.setdefault(prompt[:48], prompt)
        number += 1
    return list(found.values())
