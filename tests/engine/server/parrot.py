"""Parrot: an engine without a model. It says the prompt again and again, on a thread of its own."""

from __future__ import annotations

import threading
from pathlib import Path

from slotscope.engine.config import EngineConfig
from slotscope.engine.request import Delta, Request, RequestError
from slotscope.engine.stats import Stats

EOS = 256
POISON = 259  # as a stop token: the engine refuses the request, as one that it has no room for


class Parrot:
    """Token `n` of an answer is token `n % len(prompt)` of the prompt. Its first 8 are "cached"."""

    vocab_size = 264
    context_max = 512
    eos_ids = (EOS,)

    def __init__(self, *, width: int = 1, logprob: float = -0.5) -> None:
        """Say `width` tokens in a turn, as a verify does that accepts them."""
        self.config = EngineConfig(model_path=Path("parrot"), served_model_name="polly")
        self.asked: list[Request] = []
        self.aborted: list[str] = []
        self.complete: list[str] = []
        self.flushed = 0
        self._width = width
        self._logprob = logprob
        self._open: dict[str, Request] = {}
        self._stop_now: set[str] = set()
        self._paused = False
        self._single_turns = 0
        self._stopping = False
        self._turn = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="parrot")
        self._generated = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what runs is aborted."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        self._thread.join()

    def submit(self, request: Request) -> None:
        """Queue it."""
        self._check_alive()
        if POISON in request.sampling.stop_token_ids:
            raise RequestError("The parrot is out of feathers. Ask for less.")
        with self._turn:
            request.usage.cached_tokens = min(8, len(request.prompt))
            self.asked.append(request)
            self._open[request.request_id] = request
            self._turn.notify_all()

    def abort(self, request_id: str) -> None:
        """End it early."""
        with self._turn:
            self.aborted.append(request_id)
            if request_id in self._open:
                self._stop_now.add(request_id)
                self._turn.notify_all()

    def finish(self, request_id: str) -> None:
        """End it early: its answer is complete."""
        with self._turn:
            self.complete.append(request_id)
            if request_id in self._open:
                self._stop_now.add(request_id)
                self._turn.notify_all()

    def flush_cache(self) -> bool:
        """Nothing is kept, but the rule is kept."""
        self._check_alive()
        with self._turn:
            if self._open:
                return False
            self.flushed += 1
            return True

    def stats(self) -> Stats:
        """A snapshot."""
        with self._turn:
            verifies = self._generated // self._width
            return Stats(
                running=0 if self._paused else len(self._open),
                queued=len(self._open) if self._paused else 0,
                slots_free=5,
                slots_pinned=2,
                slots_cached=1,
                tokens_generated=self._generated,
                verifies=verifies if self._width > 1 else 0,
                accepted=self._generated if self._width > 1 else 0,
            )

    def pause(self) -> None:
        """Take requests, and aborts, but say nothing."""
        with self._turn:
            self._paused = True

    def go_on(self) -> None:
        """Speak again."""
        with self._turn:
            self._paused = False
            self._turn.notify_all()

    def say_once(self) -> None:
        """Take one turn, though paused."""
        with self._turn:
            self._single_turns += 1
            self._turn.notify_all()

    def wait_until_idle(self) -> None:
        """Return when no request is open."""
        with self._turn:
            assert self._turn.wait_for(lambda: not self._open, timeout=30)

    def wait_until_asked(self, count: int) -> None:
        """Return when `count` requests have come since the start."""
        with self._turn:
            assert self._turn.wait_for(lambda: len(self.asked) >= count, timeout=30)

    @property
    def _may_speak(self) -> bool:
        return not self._paused or self._single_turns > 0

    def _check_alive(self) -> None:
        if not self._thread.is_alive():
            raise RuntimeError("The parrot has died. Get another.")

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(
                    lambda: self._stopping or self._stop_now or (self._open and self._may_speak)
                )
                if self._stopping:
                    self._stop_now.update(self._open)
                for request in list(self._open.values()):
                    if request.request_id in self._stop_now:
                        self._say(request, Delta((), (), "abort"))
                    elif self._may_speak:
                        self._say(request, self._next(request))
                self._stop_now.clear()
                self._single_turns = max(self._single_turns - 1, 0)
                if self._stopping:
                    return

    def _next(self, request: Request) -> Delta:
        sampling = request.sampling
        tokens: list[int] = []
        reason = None
        stops = (*sampling.stop_token_ids, *(() if sampling.ignore_eos else self.eos_ids))
        while len(tokens) < self._width and reason is None:
            token = request.prompt[len(request.output) % len(request.prompt)]
            request.output.append(token)
            tokens.append(token)
            if token in stops:
                reason = "stop"
            elif len(request.output) == sampling.max_new_tokens:
                reason = "length"
        self._generated += len(tokens)
        if self._width > 1:
            request.usage.verify_count += 1
            request.usage.accept_count += len(tokens)
        return Delta(tuple(tokens), (self._logprob,) * len(tokens), reason)

    def _say(self, request: Request, delta: Delta) -> None:
        if delta.finish_reason is not None:
            del self._open[request.request_id]
            self._turn.notify_all()
        request.sink(delta)
