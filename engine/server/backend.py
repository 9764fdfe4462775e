"""What the server asks of an engine."""

from __future__ import annotations

from typing import Protocol

from slotscope.engine.config import EngineConfig
from slotscope.engine.request import Request
from slotscope.engine.stats import Stats


class Engine(Protocol):
    """Generates tokens on a thread of its own.

    Each request gets deltas through its sink, on the engine's thread, until one has a finish
    reason: none after it, and exactly one such, also for a request that was aborted or that an
    engine which stops or dies leaves behind. A stop token comes in that last delta, as its last
    token. `usage` of a request is final before that delta, its `cached_tokens` before the first.
    """

    @property
    def config(self) -> EngineConfig: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def context_max(self) -> int: ...

    @property
    def eos_ids(self) -> tuple[int, ...]: ...

    def start(self) -> None:
        """Start the thread. Once."""

    def stop(self) -> None:
        """End the thread; what still runs is aborted."""

    def submit(self, request: Request) -> None:
        """Queue a request, from any thread.

        Raises:
            RequestError: it can't be served as asked.
            RuntimeError: the engine has died.
        """

    def abort(self, request_id: str) -> None:
        """End a request early, from any thread. Nothing happens if it has ended."""

    def finish(self, request_id: str) -> None:
        """End a request whose answer is complete, as a stop token would; from any thread.

        Nothing happens if it has ended.
        """

    def flush_cache(self) -> bool:
        """Drop every checkpoint and cached page; False, and nothing done, while requests run.

        Raises:
            RuntimeError: the engine has died.
        """

    def stats(self) -> Stats:
        """A snapshot, from any thread."""
