"""The loop: admit, choose, launch, retire."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import NamedTuple

from slotscope.instrument.event import Kind

from .batch import Batch, Flight
from .cache import Cache
from .config import EngineConfig
from .decode import Decode
from .grids import Grids
from .prefill import Prefill
from .request import Request
from .retire import Retire
from .runner import Runner
from .telling import launched, staged


class SchedulerParts(NamedTuple):
    """Who decides what in a turn, and the runner that computes it."""

    config: EngineConfig
    runner: Runner
    cache: Cache
    grids: Grids
    prefill: Prefill
    decode: Decode
    retire: Retire


class Scheduler:
    """One loop for both modes: overlap 0 is serial, 1 hides the host's work behind the device's."""

    def __init__(self, parts: SchedulerParts) -> None:
        self.config, self.cache = parts.config, parts.cache
        self.prefill, self.decode, self.retire = parts.prefill, parts.decode, parts.retire
        self._runner, self._grids = parts.runner, parts.grids
        self.in_flight: deque[Flight] = deque()
        self._numbers = count(1)

    @property
    def idle(self) -> bool:
        """Nobody waits, nobody runs, nothing is in flight."""
        return not (self.prefill.busy or self.decode.running or self.in_flight)

    @property
    def stations(self) -> tuple[object, ...]:
        """The stages that this process turns; none where the model is not cut."""
        return ()

    @property
    def running_count(self) -> int:
        """Requests that hold a row."""
        return self.cache.rows.count - self.cache.rows.free_count

    def add(self, request: Request) -> None:
        """Put a request into the queue."""
        self.prefill.waiting.append(request)

    def end(self, request_id: str, reason: str) -> None:
        """End a request wherever it stands: "abort", or "stop" if its answer is complete.

        Unknown ids are ignored: it may have just finished.
        """
        if waiting := self.prefill.drop(request_id):
            waiting.finish_reason = reason
            self.retire.dismiss(waiting)
            return
        for running in (*self.decode.running, *self.prefill.partial):
            if running.request.request_id == request_id:
                self.retire.end(running, reason)
                return

    def retract(self, request_id: str) -> None:
        """Have a request that decodes give way as if KV were short; others are left alone."""
        for running in self.decode.running:
            if running.request.request_id == request_id:
                self.retire.retract(running)
                return

    def flush(self) -> None:
        """Drop every checkpoint and cached page. Nothing may run."""
        self.cache.tree.clear()

    def close(self) -> None:
        """Nothing turns any more."""

    def step(self) -> None:
        """One turn: choose work, launch it, and while it runs, retire the oldest flight."""
        batch = self._next_batch()
        if batch:
            self.in_flight.append(self._launch(batch))
        if self.in_flight and (not batch or len(self.in_flight) > self.config.overlap):
            self.retire.flight(self.in_flight.popleft())
        if self.idle:
            self.cache.check(idle=True)

    def _room_in(self, micro_batch: int) -> int:
        """Requests that may still be seated."""
        return self.config.max_running_requests - self.running_count

    def _next_batch(self, micro_batch: int = 0) -> Batch | None:
        room, headroom = self._room_in(micro_batch), self.decode.headroom
        prefill = self.prefill.next_batch(room, headroom, micro_batch)
        if prefill is None:
            return self._next_step(micro_batch)
        if self.config.enable_mixed_chunk:
            return self.decode.join(prefill, micro_batch)
        return prefill

    def _next_step(self, micro_batch: int) -> Batch | None:
        """One step of everybody who decodes; where KV is short for that, some are retracted."""
        while victim := self.decode.make_room(micro_batch):
            self.retire.retract(victim)
            self.decode.gave_way()
        return self.decode.next_batch(micro_batch)

    def _launch(self, batch: Batch) -> Flight:
        launch = launched(next(self._numbers), batch)
        staged(launch, self._grids)
        result = self._runner.run(launch)
        self._seat(batch)
        return Flight(launch, result)

    def _seat(self, batch: Batch) -> None:
        """Whose prompt is launched whole decodes from now on."""
        if batch.kind is Kind.PREFILL:
            # Their first token is known on the device, so they may step before it is retired.
            whole = [item.running for item in batch.items if item.last and not item.decodes]
            self.decode.running += whole
