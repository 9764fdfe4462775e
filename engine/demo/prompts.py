"""Prompts for the load: beginnings of texts as the bundled model writes them."""

from __future__ import annotations

from slotscope.engine.bundled.corpus import document

_FIRST = 9_000_000
"""Number of the first text; training has seen others."""


def prompts(count: int, tokens: int) -> list[str]:
    """`count` texts of exactly `tokens` bytes, each a token, no two with the same beginning."""
    found: dict[str, str] = {}
    number = _FIRST
    while len(found) < count:
        text = document(number)
        number += 1
        if len(text) >= tokens and text.isascii() and "<|" not in text[:tokens]:
            # Nodes share whole state chunks, so what differs later than that would be shared.
            found.setdefault(text[:48], text[:tokens])
    return list(found.values())
