"""Plays cells, so many at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue

from .grid import Cell
from .trial import Result


def run(
    play: Callable[[Cell], Result], cells: Sequence[Cell], concurrency: int = 1
) -> Iterator[Result]:
    """Results as they come. The first exception of `play` ends it.

    Threads are daemons: a Ctrl-C need not wait for answers that nobody wants any more.
    """
    todo: Queue[Cell] = Queue()
    done: Queue[Result | BaseException] = Queue()
    for cell in cells:
        todo.put(cell)

    def work() -> None:
        try:
            while True:
                done.put(play(todo.get_nowait()))
        except Empty:
            pass
        except Exception as error:
            done.put(error)

    for _ in range(min(concurrency, len(cells))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _ in cells:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        with suppress(Empty):  # so that the other threads end with what they are about
            while True:
                todo.get_nowait()
