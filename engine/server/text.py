"""Text from tokens, piece by piece: whole characters only, and nothing past a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from slotscope.engine.tokenizer import Tokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PENDING_TOKENS_MAX = 16


class Detokenizer:
    """Turns tokens into text as they come.

    Text of a token depends on its neighbours (a space that a leading piece loses, the bytes of one
    character spread over several tokens), so each piece is the difference of two decodings that
    begin one piece earlier, and a piece that ends in the middle of a character is kept back.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool) -> None:
        """Begin with no tokens."""
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._context: list[int] = []  # tokens of the piece before, whose text is out
        self._pending: list[int] = []  # tokens whose text is not

    def push(self, token: int) -> str:
        """Text that the token completes; often empty."""
        self._pending.append(token)
        text = self._difference()
        if text and not text.endswith(_REPLACEMENT):
            return self._release(text)
        # Bytes that never become a character must not be kept for ever.
        return self._release_most(text) if len(self._pending) >= _PENDING_TOKENS_MAX else ""

    def flush(self) -> str:
        """What was kept back: no more tokens come."""
        return self._release(self._difference())

    def _difference(self) -> str:
        known = self._decode(self._context)
        return self._decode(self._context + self._pending)[len(known) :]

    def _release_most(self, text: str) -> str:
        """All but the last tokens, which may yet become a character, cut where none is parted."""
        pending = self._pending
        for kept in (3, 2, 1):
            self._pending = pending[:-kept]
            head = self._difference()
            if text.startswith(head):
                self._release(head)
                self._pending = pending[-kept:]
                return head
        self._pending = pending
        return self._release(text)

    def _release(self, text: str) -> str:
        if text:
            self._context = self._pending
        self._pending = []
        return text

    def _decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=self._skip) if ids else ""


class StopMatcher:
    """Cuts a text before the first stop string, and keeps back what may yet become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        """Look for `stops`, none of which is empty."""
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None  # the stop string that ended the text

    def push(self, piece: str) -> str:
        """Text that is safe to send. Nothing more may be pushed after a match."""
        text = self._held + piece
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            # Of two that begin at one place, the longer says more about why it ended.
            at, self.matched = min(found, key=lambda entry: (entry[0], -len(entry[1])))
            self._held = ""
            return text[:at]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """What was kept back: the text ends here, without a match."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`, `stop` itself excluded."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
