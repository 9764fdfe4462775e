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
from .attempts import begin_attempt
from .config import EngineConfig
from .prefill import tokens_needed
from .request import Delta, Request, RequestError, SamplingParams
from .stats import Stats


class EngineError(RuntimeError):
    """The engine's thread has died, or was stopped. What it served was aborted."""


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
        self._door = threading.Lock()  # of the inbox: once it is closed, nothing more comes in
        self._closed: str | None = None  # why
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._live: dict[str, Request] = {}
        self._names = count()
        _describe(config)

    def start(self) -> None:
        """Turn the loop on a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="slotscope-engine", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what still runs is aborted."""
        self._close("it was stopped")
        self._wake.set()
        if self._thread:
            self._thread.join()
        else:
            self._abort_all()
        self.scheduler.close()

    def submit(self, request: Request) -> None:
        """Queue a request, from any thread.

        Raises:
            RequestError: it can't be served as asked.
            EngineError: the engine has died, or was stopped.
        """
        self._check(request)
        begin_attempt(request)
        self._ask(lambda: self._begin(request))

    def abort(self, request_id: str) -> None:
        """End a request early, from any thread. Nothing happens if it has ended."""
        with suppress(EngineError):
            self._ask(lambda: self.scheduler.end(request_id, "abort"))

    def finish(self, request_id: str) -> None:
        """End a request whose asker has all that it wants, as a stop token would: what it
        computed may be reused. From any thread; nothing happens if it has ended."""
        with suppress(EngineError):
            self._ask(lambda: self.scheduler.end(request_id, "stop"))

    def retract(self, request_id: str) -> None:
        """Have a request give way as if KV were short, from any thread. Its answer stays the same;
        nothing happens unless it decodes."""
        with suppress(EngineError):
            self._ask(lambda: self.scheduler.retract(request_id))

    def flush_cache(self) -> bool:
        """Drop every checkpoint and cached page; False, and nothing done, while requests run.

        Raises EngineError if the engine has died, or was stopped.
        """
        flushed: Future[bool] = Future()

        def act() -> None:
            idle = self.scheduler.idle
            if idle:
                self.scheduler.flush()
            flushed.set_result(idle)

        self._ask(act)
        if self._thread is None:
            self._drain_inbox()
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
        return requests

    def turn(self) -> None:
        """One turn of the loop: what was asked from outside, then one step."""
        self._drain_inbox()
        self.scheduler.step()
        while self.scheduler.retire.ended:
            self._live.pop(self.scheduler.retire.ended.popleft(), None)

    def stats(self) -> Stats:
        """A snapshot, from any thread."""
        slots, host, retire = self._cache.slots, self._cache.host, self.scheduler.retire
        return Stats(
            running=self.scheduler.running_count,
            queued=len(self.scheduler.prefill.waiting),
            slots_free=slots.free_count,
            slots_pinned=slots.owned_by_requests(),
            slots_cached=slots.owned_by_nodes(),
            host_slots_free=host.slots.free_count if host else 0,
            host_slots_cached=host.slots.owned_by_nodes() if host else 0,
            host_tokens_cached=host.tokens_held if host else 0,
            offloads=host.offloads if host else 0,
            load_backs=host.load_backs if host else 0,
            tokens_generated=retire.tokens_generated,
            tokens_cached=self._cache.tokens_restored,
            verifies=retire.verifies,
            accepted=retire.accepted,
            retractions=retire.retractions,
        )

    def _check(self, request: Request) -> None:
        prompt, asked, config = request.prompt, request.sampling, self.config
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
        if (needed := tokens_needed(request, config)) > (room := config.kv_tokens):
            raise RequestError(
                f"the request needs KV for {needed} tokens, but the engine has room for {room}. "
                "Lower max_new_tokens, or start the engine with more --max-total-tokens."
            )

    def _begin(self, request: Request) -> None:
        self._live[request.request_id] = request
        self.scheduler.add(request)

    def _ask(self, act: Callable[[], None]) -> None:
        with self._door:
            if self._closed:
                raise EngineError(f"the engine serves no more: {self._closed}. Start a new one.")
            self._inbox.append(act)
        self._wake.set()

    def _close(self, why: str) -> None:
        with self._door:
            self._closed = self._closed or why

    def _drain_inbox(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _run(self) -> None:
        try:
            while not self._closed:
                self.turn()
                if self.scheduler.idle and not self._inbox:
                    self._wake.wait()
                    self._wake.clear()
        except BaseException as failure:
            self._close(f"it died of {failure!r}")
            raise
        finally:
            self._abort_all()

    def _abort_all(self) -> None:
        """What was asked before the door closed is answered all the same."""
        while self._inbox:
            with suppress(Exception):
                self._drain_inbox()
        for request in self._live.values():
            if not request.finished:
                request.finish_reason = "abort"
                request.sink(Delta((), (), "abort"))
        self._live.clear()


def _describe(config: EngineConfig) -> None:
    """The trace keeps the configuration, so that a finding can be read without the server's log."""
    probe.note("engine.name", "slotscope")
    probe.note("engine.torch", torch.__version__)
    for each in fields(config):
        value = getattr(config, each.name)
        if isinstance(value, tuple):
            value = ",".join(value)
        probe.note(f"engine.{each.name}", value if isinstance(value, int | float) else str(value))
