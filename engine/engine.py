"""Engine: a model, a scheduler, and the thread that turns it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from itertools import count

import torch

from slotscope.instrument import probe

from .assemble import Parts, assemble
from .config import EngineConfig
from .request import Delta, Request, RequestError, SamplingParams
from .stats import Stats


class EngineError(RuntimeError):
    """The engine's thread has died. What it served was aborted; restart it."""


class Engine:
    """Serves requests of one model.

    Use it with `start`, `submit` and `stop` from other threads, or call `generate` in its own
    thread, which turns the loop itself.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        parts: Parts = assemble(config)
        self.scheduler, self._model, self._cache = parts.scheduler, parts.model, parts.cache
        self.vocab_size: int = self._model.vocab_size
        self.eos_ids: tuple[int, ...] = self._model.eos_ids
        self.context_max = min(config.context_length, self._model.context_max)
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._live: dict[str, Request] = {}
        self._names = count()
        _describe(config)

    def start(self) -> None:
        """Turn the loop on a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="slotscope-engine", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what still runs is aborted."""
        self._stopping = True
        self._wake.set()
        if self._thread:
            self._thread.join()

    def submit(self, request: Request) -> None:
        """Queue a request, from any thread. RequestError if it can't be served as asked."""
        self._check_alive()
        self._check(request)
        request.number = probe.request(
            request.request_id, client_id=request.client_id, trace_parent=request.trace_parent
        )
        self._live[request.request_id] = request
        self._ask(lambda: self.scheduler.add(request))

    def abort(self, request_id: str) -> None:
        """End a request early, from any thread. Nothing happens if it has ended."""
        self._ask(lambda: self.scheduler.end(request_id, "abort"))

    def finish(self, request_id: str) -> None:
        """End a request whose asker has all that it wants, as a stop token would: what it
        computed may be reused. From any thread; nothing happens if it has ended."""
        self._ask(lambda: self.scheduler.end(request_id, "stop"))

    def flush_cache(self) -> bool:
        """Drop every checkpoint and cached page; False, and nothing done, while requests run.

        Raises EngineError if the engine's thread has died.
        """
        flushed: Future[bool] = Future()

        def act() -> None:
            idle = self.scheduler.idle
            if idle:
                self._cache.tree.clear()
            flushed.set_result(idle)

        self._ask(act)
        if self._thread is None:
            self._drain_inbox()
        while not flushed.done():
            self._check_alive()
            with suppress(TimeoutError):
                return flushed.result(timeout=0.1)
        return flushed.result()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        extra_key: str = "",
    ) -> list[Request]:
        """Serve these prompts together, in this thread, and return them when all have finished.

        Requests share cached prefixes only under an equal `extra_key`.
        """
        asked = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        requests = [
            Request(f"r{next(self._names)}", tuple(prompt), params, extra_key=extra_key)
            for prompt, params in zip(prompts, asked, strict=True)
        ]
        for request in requests:
            self.submit(request)
        while not all(request.finished for request in requests) or not self.scheduler.idle:
            self.turn()
        self._forget_finished()
        return requests

    def turn(self) -> None:
        """One turn of the loop: what was asked from outside, then one step."""
        self._drain_inbox()
        self.scheduler.step()

    def stats(self) -> Stats:
        """A snapshot, from any thread."""
        slots, retire = self._cache.slots, self.scheduler.retire
        return Stats(
            running=self.scheduler.running_count,
            queued=len(self.scheduler.prefill.waiting),
            slots_free=slots.free_count,
            slots_pinned=slots.owned_by_requests(),
            slots_cached=slots.owned_by_nodes(),
            tokens_generated=retire.tokens_generated,
            tokens_cached=self._cache.tokens_restored,
            verifies=retire.verifies,
            accepted=retire.accepted,
        )

    def _check(self, request: Request) -> None:
        prompt, asked = request.prompt, request.sampling
        if not prompt:
            raise RequestError("the prompt is empty, but the first token needs one before it.")
        if not all(0 <= token < self.vocab_size for token in prompt):
            raise RequestError(
                f"the prompt holds token {max(prompt)}, but the vocabulary ends at "
                f"{self.vocab_size - 1}. Tokenise it with this model's tokenizer."
            )
        if (total := len(prompt) + asked.max_new_tokens) > self.context_max:
            raise RequestError(
                f"a prompt of {len(prompt)} tokens and max_new_tokens {asked.max_new_tokens} make "
                f"{total}, but the context ends at {self.context_max}. Shorten the prompt or lower "
                f"max_new_tokens to {max(self.context_max - len(prompt), 0)}."
            )

    def _ask(self, act: Callable[[], None]) -> None:
        self._inbox.append(act)
        self._wake.set()

    def _check_alive(self) -> None:
        if self._failure:
            raise EngineError(f"the engine died of {self._failure!r}; restart it.")

    def _drain_inbox(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self.turn()
                if self.scheduler.idle and not self._inbox:
                    self._forget_finished()
                    self._wake.wait()
                    self._wake.clear()
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self._abort_all()

    def _forget_finished(self) -> None:
        for request_id, request in list(self._live.items()):
            if request.finished:
                del self._live[request_id]

    def _abort_all(self) -> None:
        for request in list(self._live.values()):
            if not request.finished:
                request.finish_reason = "abort"
                request.sink(Delta((), (), "abort"))


def _describe(config: EngineConfig) -> None:
    """The trace keeps the configuration, so that a finding can be read without the server's log."""
    probe.note("engine.name", "slotscope")
    probe.note("engine.torch", torch.__version__)
    for each in fields(config):
        value = getattr(config, each.name)
        if isinstance(value, tuple):
            value = ",".join(value)
        probe.note(f"engine.{each.name}", value if isinstance(value, int | float) else str(value))
