"""Random serving: a small engine that decides by chance, and says what it does as a history.

All that it says is legal: strategies with a keep and a spare, verify or plain decode, results read
at once or one turn late, chunked prefill, reuse, eviction, aborts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

GRID = 8
DRAFT = 3
# A verify must not cross into a slot that the one before it just made the keep: 2 * DRAFT < GRID.


@dataclass(eq=False)
class Running:
    """A request on the move. Depths are what the device holds after all that was launched."""

    number: int
    live: int
    keep: int
    target: int
    depth: int = 0
    length: int = 0  # what the host has heard of
    kept: int | None = None  # depth of the keep
    prompt: int = 0
    spare: int | None = None
    ended: bool = False
    outstanding: int = 0  # verifies in flight that may write the keep in place


@dataclass(eq=False)
class Node:
    number: int
    slot: int
    depth: int


@dataclass
class Serving:
    """Say `turns` turns with `run`; the tokens are in `said`."""

    random: Random
    said: list[str] = field(default_factory=list)
    free: deque[int] = field(default_factory=lambda: deque(range(1, 9)))
    running: list[Running] = field(default_factory=list)
    tree: list[Node] = field(default_factory=list)
    flights: deque[list[Callable[[], None]]] = field(default_factory=deque)
    requests: int = 0
    forwards: int = 0
    nodes: int = 0

    def __post_init__(self) -> None:
        self.overlap = self.random.randrange(2)
        self.speculate = self.random.random() < 0.6

    def run(self, turns: int) -> str:
        """The whole history."""
        for _ in range(turns):
            self._turn()
            while len(self.flights) > self.overlap:
                self._retire()
        while self.flights and self.random.random() < 0.8:
            self._retire()
        return " ".join(self.said)

    def _say(self, token: str) -> None:
        self.said.append(token)

    def _chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def _turn(self) -> None:
        if self.running and self._chance(12):
            self._end(self.random.choice(self.running), aborted=True)
        chunked = [r for r in self.running if r.depth < r.prompt]
        if chunked:
            self._prefill(chunked[0])
        elif len(self.running) < 3 and self._chance(2) and self._reach(2):
            self._admit()
        elif self.running:
            self._verify() if self.speculate else self._decode()

    def _reach(self, count: int) -> bool:
        while len(self.free) < count and self.tree:
            node = self.tree.pop(self.random.randrange(len(self.tree)))
            self._say(f"n{node.number}-{node.slot}")
            self._give_back(node.slot, "")
        return len(self.free) >= count

    def _take(self, request: int, role: str) -> int:
        slot = self.free.popleft()
        self._say(f"r{request}+{role}{slot}")
        return slot

    def _give_back(self, slot: int, by: str) -> None:
        self._say(f"{by}-{slot}")
        self.free.append(slot)

    def _launch(self, kind: str) -> int:
        self.forwards += 1
        self._say(f"{kind}{self.forwards}")
        return self.forwards

    def _admit(self) -> None:
        self.requests += 1
        number = self.requests
        self._say(f"r{number}+")
        node = self.random.choice(self.tree) if self.tree and self._chance(2) else None
        if node:
            self._say(f"r{number}.n{node.number}?{node.slot}@{node.depth}")
        live, keep = self._take(number, "live"), self._take(number, "keep")
        reused = node.depth if node else 0
        prompt = reused + self.random.randrange(1, 20)
        request = Running(number, live, keep, target=prompt + self.random.randrange(1, 20))
        request.prompt = prompt
        self.running.append(request)
        self._prefill(request, node, first=True)

    def _prefill(self, request: Running, node: Node | None = None, *, first: bool = False) -> None:
        forward = self._launch("P")
        live = f"{forward}:{request.live}"
        if first and node:
            self._say(f"{live}<{node.slot}@{node.depth}n{node.number}")
            request.depth = node.depth
        elif first:
            self._say(f"{live}@0")
        end = min(request.prompt, request.depth + self.random.randrange(1, 16))
        self._say(f"{live}@{request.depth}>{end}")
        tracked = end // GRID * GRID
        if tracked > max(request.depth, request.kept or 0):
            self._say(f"{forward}:{request.keep}^{tracked}%{GRID}")
            request.kept = tracked
        request.depth = request.length = end
        self.flights.append([lambda: self._say(f"/{forward}")])

    def _decode(self) -> None:
        due = [r for r in self.running if (r.depth + 1) % GRID == 0 and r.spare is None]
        for request in due[: len(self.free)]:
            request.spare = self._take(request.number, "spare")
        forward = self._launch("D")
        retire: list[Callable[[], None]] = []
        for request in self.running:
            self._say(f"{forward}:{request.live}@{request.depth}>{request.depth + 1}")
            request.depth += 1
            if request in due and request.spare is not None:
                retire.append(self._copy(forward, request, request.spare))
            retire.append(self._length(request, request.depth))
        self.flights.append([*retire, lambda: self._say(f"/{forward}")])

    def _copy(self, forward: int, request: Running, spare: int) -> Callable[[], None]:
        depth = request.depth
        self._say(f"{forward}:{spare}={request.live}@{depth}%{GRID}")
        return lambda: self._promote(request, depth)

    def _promote(self, request: Running, depth: int) -> None:
        if request.ended or request.spare is None:
            return
        old, request.keep, request.spare = request.keep, request.spare, None
        request.kept = depth
        self._say(f"r{request.number}~{request.keep}<{old}={depth}")
        self._give_back(old, f"r{request.number}")

    def _length(self, request: Running, length: int) -> Callable[[], None]:
        def retire() -> None:
            if not request.ended and length >= request.target:
                self._end(request)

        return retire

    def _verify(self) -> None:
        for request in self.running:
            if request.spare is None and self.free and self._chance(2):
                request.spare = self._take(request.number, "spare")
        forward = self._launch("V")
        commits: list[str] = []
        settle: list[Callable[[], None]] = []
        for request in self.running:
            target, in_place = request.spare or request.keep, request.spare is None
            self._say(f"{forward}:r{request.number}?{target}@{request.length}")
            before, taken = request.depth, self.random.randrange(1, DRAFT + 1)
            request.depth += taken
            crossing = request.depth // GRID * GRID
            crossed = crossing if crossing > max(before, request.kept or 0) else None
            owner, live = f"{forward}:r{request.number}.", request.live
            commits.append(f"{owner}{live}@{before}+{taken}")
            if crossed:
                commits.append(f"{owner}{target}^{crossed}%{GRID}")
            request.outstanding += in_place
            settle.append(self._settled(request, request.depth, crossed, in_place))
        done = f"/{forward}"
        order = [*commits, done] if self._chance(2) else [done, *commits]
        tell = [lambda token=token: self._say(token) for token in order]
        self.flights.append([*tell, *settle])

    def _settled(
        self, request: Running, length: int, crossed: int | None, in_place: bool
    ) -> Callable[[], None]:
        def retire() -> None:
            request.outstanding -= in_place
            if request.ended:
                return
            request.length = length
            if crossed and in_place:
                request.kept = crossed
            elif crossed:
                self._promote(request, crossed)
            if length >= request.target:
                self._end(request)

        return retire

    def _retire(self) -> None:
        for tell in self.flights.popleft():
            tell()

    def _end(self, request: Running, *, aborted: bool = False) -> None:
        request.ended = True
        self.running.remove(request)
        number = request.number
        self._say(f"r{number}-{'!' if aborted else ''}")
        if request.kept is None or aborted:
            self._give_back(request.keep, f"r{number}")
        elif request.outstanding:
            self._say(f"{request.keep}!{request.kept}%{GRID}x")
            self._give_back(request.keep, f"r{number}")
        else:
            self._donate(request)
        if request.spare is not None:
            self._give_back(request.spare, f"r{number}")
        self._give_back(request.live, f"r{number}")

    def _donate(self, request: Running) -> None:
        self.nodes += 1
        exists = "x" if self._chance(6) else ""
        self._say(f"{request.keep}!{request.kept}n{self.nodes}%{GRID}")
        self._say(f"n{self.nodes}+{request.keep}@{request.kept}{exists}")
        if exists:
            self._give_back(request.keep, f"r{request.number}")
        else:
            assert request.kept is not None
            self.tree.append(Node(self.nodes, request.keep, request.kept))
