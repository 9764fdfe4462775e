"""Generation: one request at work, and what the client may see of it so far."""

from __future__ import annotations

import time
from dataclasses import dataclass

from slotscope.engine.request import Delta, Request, SamplingParams
from slotscope.engine.tokenizer import Tokenizer

from .text import Detokenizer, StopMatcher


@dataclass(frozen=True, slots=True)
class Wish:
    """How to generate: the engine's part, and what is done to its tokens here."""

    sampling: SamplingParams
    limit_given: bool = True  # False: max_new_tokens is a default, and gives way to the context
    stop: tuple[str, ...] = ()
    skip_special_tokens: bool = True


@dataclass(frozen=True, slots=True)
class Finish:
    """Why a generation ended."""

    reason: str  # "stop", "length", "abort"
    matched: int | str | None = None  # token id or string that stopped it


@dataclass(frozen=True, slots=True)
class Piece:
    """What came in one turn. `text` may lag behind `tokens`, and never passes a stop."""

    text: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Finish | None = None


class Generation:
    """Folds an engine's deltas into text. Not for use by two threads at once."""

    def __init__(self, request: Request, wish: Wish, tokenizer: Tokenizer | None) -> None:
        """Wait for the first delta of `request`. Without a tokenizer `text` stays empty."""
        self.request = request
        self.wish = wish
        self.text = ""
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.finish: Finish | None = None
        self.begun_s = time.perf_counter()
        self.first_s: float | None = None  # when the first token came
        self.ended_s: float | None = None
        self._detokenizer = (
            Detokenizer(tokenizer, skip_special_tokens=wish.skip_special_tokens)
            if tokenizer
            else None
        )
        self._matcher = StopMatcher(wish.stop)
        # A stop string that is one special token never shows in the text: it stops by its id.
        self._stop_names = {
            token: stop
            for stop in wish.stop
            if tokenizer and (token := tokenizer.special_id(stop)) is not None
        }

    @property
    def latency_s(self) -> float | None:
        """Seconds from the call to the end; None before the end."""
        return None if self.ended_s is None else self.ended_s - self.begun_s

    def feed(self, delta: Delta) -> Piece | None:
        """Take the engine's next delta; None once finished, since the rest is not the client's."""
        if self.finish is not None:
            return None
        if self.first_s is None and delta.tokens:
            self.first_s = time.perf_counter()
        text, used = "", 0
        visible = len(delta.tokens) - (delta.finish_reason == "stop" and bool(delta.tokens))
        for token in delta.tokens[:visible]:
            used += 1
            text += self._say(token)
            if self._matcher.matched is not None:
                # Tokens after the stop were generated with it in one verify; nobody asked for them.
                self.finish = Finish("stop", self._matcher.matched)
                break
        else:
            used = len(delta.tokens)
            if delta.finish_reason is not None:
                text += self._last_words()
                self.finish = self._finish(delta)
        piece = Piece(text, delta.tokens[:used], delta.logprobs[:used], self.finish)
        self._keep(piece)
        return piece

    def _say(self, token: int) -> str:
        return self._matcher.push(self._detokenizer.push(token)) if self._detokenizer else ""

    def _last_words(self) -> str:
        """Text that was kept back, now that nothing follows."""
        if self._detokenizer is None:
            return ""
        text = self._matcher.push(self._detokenizer.flush())
        return text if self._matcher.matched is not None else text + self._matcher.flush()

    def _finish(self, delta: Delta) -> Finish:
        if self._matcher.matched is not None:
            return Finish("stop", self._matcher.matched)
        if delta.finish_reason == "stop" and delta.tokens:
            token = delta.tokens[-1]
            return Finish("stop", self._stop_names.get(token, token))
        return Finish(delta.finish_reason or "abort")

    def _keep(self, piece: Piece) -> None:
        self.text += piece.text
        self.tokens.extend(piece.tokens)
        self.logprobs.extend(piece.logprobs)
        if piece.finish is not None:
            self.ended_s = time.perf_counter()
