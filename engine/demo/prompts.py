"""Prompts for the load: beginnings of texts as the bundled model writes them."""

from __future__ import annotations

from random import Random

from slotscope.engine.bundled.corpus import log, story

_FIRST = 9_000_000
"""Seed of the first text; training has seen others."""


def prompts(count: int, tokens: int) -> list[str]:
    """`count` texts of exactly `tokens` bytes, each a token, no two with the same beginning.

    Logs and stories run on over days and hours, so that a state which has counted too far shows.
    """
    found: dict[str, str] = {}
    number = _FIRST
    while len(found) < count:
        text = (log, story)[number % 2].write(Random(number))
        number += 1
        if len(text) >= tokens and text.isascii():
            # Nodes share whole state chunks, so what differs later than that would be shared.
            found.setdefault(text[:48], text[:tokens])
    return list(found.values())
