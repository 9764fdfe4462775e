"""Call: one HTTP call, the generations that it asked for, and the queue that the engine fills."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from slotscope.engine.request import Delta

from .backend import Engine
from .errors import ApiError
from .generation import Generation, Piece


class Call:
    """Generations of one HTTP call. Lives on the event loop; only `sink` is for other threads."""

    def __init__(self, engine: Engine, on_end: Callable[[Generation], None]) -> None:
        """A call without generations. `on_end` hears of each generation once, when it is over."""
        self.generations: list[Generation] = []
        self._engine = engine
        self._on_end = on_end
        self._open: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[tuple[int, Delta]] = asyncio.Queue()

    def sink(self, index: int) -> Callable[[Delta], None]:
        """What the engine calls, on its own thread, with deltas of generation `index`."""

        def deliver(delta: Delta) -> None:
            # The loop is closed when the server has gone before the engine: nobody listens.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._arrived.put_nowait, (index, delta))

        return deliver

    def submit(self, generation: Generation) -> None:
        """Hand the next generation to the engine.

        Raises:
            RequestError: it can't be served as asked.
            ApiError: the engine has died.
        """
        try:
            self._engine.submit(generation.request)
        except RuntimeError as error:
            raise ApiError(str(error), status=503) from error
        self._open.add(len(self.generations))
        self.generations.append(generation)

    async def pieces(self) -> AsyncIterator[tuple[int, Piece]]:
        """(index of the generation, what came), as it comes, until all have finished."""
        while self._open:
            index, delta = await self._arrived.get()
            generation = self.generations[index]
            piece = generation.feed(delta)
            if piece is None:
                continue
            if piece.finish is not None:
                if delta.finish_reason is None:  # a stop string: the engine knows nothing of it
                    self._engine.finish(generation.request.request_id)
                self._end(index)
            yield index, piece

    async def finish(self) -> None:
        """Wait until all generations have finished."""
        async for _ in self.pieces():
            pass

    def close(self) -> None:
        """End what still runs: the client has gone, or a later generation was refused."""
        for index in sorted(self._open):
            self._engine.abort(self.generations[index].request.request_id)
            self._end(index)

    def _end(self, index: int) -> None:
        self._open.discard(index)
        self._on_end(self.generations[index])
