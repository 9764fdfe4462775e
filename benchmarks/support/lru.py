"""An independent model of reuse: what an LRU cache of checkpoints would serve of a workload.

It shares no code with the engine and moves no tensor. It knows the workload and these rules:
a request pins so many slots while it runs; what is not pinned holds checkpoints; a slot that is
needed and not free is the least recently used checkpoint's, unless a running request resumed from
it or left it; a resumed request refreshes the one checkpoint that it resumed from, not those above.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

State = tuple[int, int]
"""A checkpoint: conversation, depth in tokens."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A strategy, as far as its cache goes."""

    pinned: int  # slots of a running request
    grid: int  # depths of checkpoints, in tokens; 1: any
    spare: Literal["none", "free", "evict"] = "none"  # near a grid depth: from where one is taken
    ahead: int = 0  # how near, in tokens
    lag: int = 1  # forwards in flight while the next is launched


@dataclass(slots=True, eq=False)
class Asked:
    """One turn of a conversation."""

    conversation: int
    prompt: int  # tokens
    answer: int
    accepted: Sequence[int] = ()  # tokens by which each forward moves it; 1 where it tells none
    launched: int = 0  # such forwards
    length: int = 0  # tokens in the state, as far as results were read
    cached: int = 0
    holds: State | None = None  # the checkpoint that it keeps from eviction
    spare: bool = False
    in_place: bool = False  # it found no spare, so its crossing replaces its last checkpoint
    ended: bool = False


Flight = list[tuple[Asked, int]]
"""Requests that a forward moves, and by how much; 0: it computes their prompt."""


@dataclass(slots=True)
class LruModel:
    """Serves requests, `seats` at a time, in the order in which they are asked."""

    pool: int
    seats: int
    rules: Rules
    cached: OrderedDict[State, None] = field(default_factory=OrderedDict)
    running: list[Asked] = field(default_factory=list)
    waiting: deque[Asked] = field(default_factory=deque)
    taken: int = 0  # slots that running requests hold

    def serve(self, asked: Sequence[Asked]) -> None:
        """Run these to the end; `cached` of each is what it found."""
        self.waiting.extend(asked)
        flights: deque[Flight] = deque()
        while self.waiting or self.running or flights:
            flight = self._launch()
            if flight:
                flights.append(flight)
            if flights and (not flight or len(flights) > self.rules.lag):
                for request, moved in flights.popleft():
                    self._read(request, moved)

    def _launch(self) -> Flight:
        """New requests go first; where there are none, everybody takes a step."""
        admitted: Flight = []
        while self.waiting and len(self.running) < self.seats:
            self._admit(request := self.waiting.popleft())
            admitted.append((request, 0))
        return admitted or [(request, self._step(request)) for request in self.running]

    def _admit(self, request: Asked) -> None:
        # The last prompt token is always computed, so a checkpoint at the very end can't serve.
        depths = [d for c, d in self.cached if c == request.conversation and d < request.prompt]
        if depths:
            request.cached = max(depths)
            request.holds = (request.conversation, request.cached)
            self.cached.move_to_end(request.holds)
        request.length = request.prompt
        self.running.append(request)
        for _ in range(self.rules.pinned):
            self._take()

    def _step(self, request: Asked) -> int:
        if self.rules.spare != "none" and self._crosses(request.length, self.rules.ahead):
            self._want_spare(request)
        at, request.launched = request.launched, request.launched + 1
        return request.accepted[at] if at < len(request.accepted) else 1

    def _read(self, request: Asked, moved: int) -> None:
        if request.ended:
            return
        if not moved:
            # A verify is in flight already. What it may yet replace is kept back.
            if not request.in_place:
                self._leave(request, request.prompt)
            return
        crossed = self._crosses(request.length, moved)
        request.length += moved
        # The last token was sampled but never fed, so it is in no state.
        if request.length + 1 >= request.prompt + request.answer:
            request.ended = True
            self.running.remove(request)
            self._leave(request, request.prompt + request.answer - 1)
            self.taken -= self.rules.pinned + request.spare
        elif crossed and request.spare:
            request.spare = False  # promoted, and what it replaces is free
            self.taken -= 1

    def _want_spare(self, request: Asked) -> None:
        if request.spare:
            return
        request.spare = self.rules.spare == "evict" or self._has_free
        request.in_place = not request.spare
        if request.spare:
            self._take()

    def _leave(self, request: Asked, length: int) -> None:
        """Hand the deepest checkpoint to the cache. Who goes on takes a slot in its place."""
        state = (request.conversation, length // self.rules.grid * self.rules.grid)
        if request.holds and state[1] <= request.holds[1] or not state[1]:
            return
        if not request.ended:
            self._take()
            self.taken -= 1  # the old one is the cache's now
        self.cached[state] = None
        request.holds = state

    @property
    def _has_free(self) -> bool:
        return self.taken + len(self.cached) < self.pool

    def _take(self) -> None:
        if not self._has_free:
            held = {request.holds for request in self.running}
            del self.cached[next(state for state in self.cached if state not in held)]
        self.taken += 1

    def _crosses(self, before: int, ahead: int) -> bool:
        return (before + ahead) // self.rules.grid > before // self.rules.grid
