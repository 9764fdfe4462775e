"""The text that the bundled model knows: a grammar of our own, so anybody may ship and remake it.

Each document is a pure function of its number. Training uses numbers from 0 up; `HELD_OUT` and
above are never trained on, so prompts drawn there are new to the model.

The documents are full of facts that must be kept: a code word from the first line, a line number
that goes on, a tally, a rota of three watchers. A wrong recurrent state therefore shows as a wrong
word and not only as a different probability.
"""

from __future__ import annotations

from random import Random

from . import chat, facts, ledger, log, pattern, story
from .special import END_OF_TEXT, IM_END, IM_START, VOCAB_SIZE, encode

HELD_OUT = 1_000_000_000

# Chats weigh most, since clients mostly send chats.
_WRITERS = (log.write, ledger.write, story.write, pattern.write, facts.write, chat.write)
_WEIGHTS = (18, 10, 16, 12, 10, 34)


def document(number: int) -> str:
    """Text number `number`: 150 to 3000 characters of ASCII, chat markers spelt out."""
    rng = Random(number)
    writer = rng.choices(_WRITERS, _WEIGHTS)[0]
    return writer(rng)


__all__ = [
    "END_OF_TEXT",
    "HELD_OUT",
    "IM_END",
    "IM_START",
    "VOCAB_SIZE",
    "document",
    "encode",
]
