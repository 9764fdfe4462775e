"""Prefill: which waiting request goes next, and in which chunk."""

from __future__ import annotations

from collections import deque

from slotscope.instrument.event import Kind

from .batch import Batch, Item
from .cache import Cache
from .checkpoints import Strategy
from .config import EngineConfig
from .headroom import remaining
from .request import Request
from .running import Running


class Prefill:
    """First come, first served; of a micro-batch at most one request is amid its prompt."""

    def __init__(
        self, config: EngineConfig, cache: Cache, strategy: Strategy, state_chunk: int
    ) -> None:
        self._config, self._cache, self._strategy = config, cache, strategy
        self._chunk = state_chunk
        self.waiting: deque[Request] = deque()
        self._partial: dict[int, Running] = {}  # micro-batch -> request amid its prompt

    @property
    def busy(self) -> bool:
        """Somebody waits, or is in the middle of a prompt."""
        return bool(self.waiting or self._partial)

    @property
    def partial(self) -> tuple[Running, ...]:
        """The requests in the middle of their prompts."""
        return tuple(self._partial.values())

    def drop(self, request_id: str) -> Request | None:
        """Take a waiting request out of the queue."""
        found = next((r for r in self.waiting if r.request_id == request_id), None)
        if found:
            self.waiting.remove(found)
        return found

    def put_back(self, request: Request) -> None:
        """A retracted request goes before all that wait."""
        self.waiting.appendleft(request)

    def forget(self, running: Running) -> None:
        """A request ended, maybe in the middle of its prompt."""
        if self._partial.get(running.micro_batch) is running:
            del self._partial[running.micro_batch]

    def next_batch(self, room: int, headroom: int, micro_batch: int = 0) -> Batch | None:
        """Chunks of up to `chunked_prefill_size` tokens, of at most `room` new requests.

        `headroom` tokens of KV stay within reach for those that decode.
        """
        items: list[Item] = []
        headroom += sum(remaining(running.request) for running in self.partial)
        budget = self._config.chunked_prefill_size
        while budget > 0:
            running = self._partial.pop(micro_batch, None)
            if running is None and room > 0:
                running = self._admit(headroom, micro_batch)
                room -= 1
                headroom += remaining(running.request) if running else 0
            if running is None:
                break
            item = self._next_chunk(running, budget)
            if item is None:
                self._partial[micro_batch] = running
                break
            items.append(item)
            budget -= item.end - item.start
            if not item.last:
                self._partial[micro_batch] = running
                break
        return Batch(Kind.PREFILL, tuple(items)) if items else None

    def _admit(self, headroom: int, micro_batch: int) -> Running | None:
        if not self.waiting:
            return None
        request = self.waiting[0]
        running = self._cache.admit(
            request,
            slots=self._strategy.slots_per_request,
            ahead=headroom + remaining(request) + slack(self._config),
        )
        if running is not None:
            self.waiting.popleft()
            running.micro_batch = micro_batch
            self._strategy.open(running)
        return running

    def _next_chunk(self, running: Running, budget: int) -> Item | None:
        """The next chunk of a prompt; None where the budget is too small for a whole state chunk.

        A chunk that is not the last ends on the state chunk, counted from where it starts, so that
        the next one can leave checkpoints again.
        """
        start, total = running.length, running.fill
        end = min(start + budget, total)
        if end < total:
            end = start + (end - start) // self._chunk * self._chunk
            if end == start:
                return None
        if not running.fresh:
            self._strategy.publish_prefill(running)
        target = self._strategy.aim_prefill(running, start, end)
        item = Item(
            running,
            start,
            end,
            target,
            last=end == total,
            source=running.source,
            node=running.node.id if running.node and running.fresh else None,
            fresh=running.fresh,
            pending=running.pending,
        )
        running.length, running.fresh, running.pending = end, False, 0
        return item


def tokens_needed(request: Request, config: EngineConfig) -> int:
    """KV locations of a request at its longest."""
    return len(request.prompt) + request.sampling.max_new_tokens + slack(config)


def slack(config: EngineConfig) -> int:
    """KV locations beyond a request's last token: under overlap a forward is launched before the
    one that ends the request is retired, and a verify writes drafts before it knows their fate."""
    drafting = config.speculative_num_steps + config.draft_room - config.draft_tokens
    return (config.overlap + 1) * max(config.draft_tokens, 1) + drafting
