"""Session: one process's part in a trace. Gives each thread its writer."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Protocol

from . import spawn
from .control import Control
from .event import Op
from .layout import Fact, Reason
from .place import Place
from .roller import Roller, Segment
from .writer import Writer, slot_count


class Voice(Protocol):
    """What a thread speaks through."""

    @property
    def next_seq(self) -> int: ...

    def append(self, op: Op, given: dict[str, Any]) -> int: ...

    def state(self, fact: Fact, content: dict[str, Any]) -> None: ...


class Overflow:
    """The voice of threads that got no writer: nothing is stored, everything is counted."""

    next_seq = -1

    def __init__(self, control: Control | None, orders: Iterator[int]) -> None:
        self._control, self._orders = control, orders

    def append(self, op: Op, given: dict[str, Any]) -> int:
        """Count the call's events."""
        order = next(self._orders)
        self._lose(op, slot_count(given), order)
        return order

    def state(self, fact: Fact, content: dict[str, Any]) -> None:
        """Count the fact."""
        self._lose(fact, 1, next(self._orders))

    def _lose(self, op: int, events: int, order: int) -> None:
        if self._control is not None and 0 <= op < 64:
            self._control.lose_shared(op, events, order, Reason.FULL)


class _Seat:
    """Gives a thread's writer to a later thread, once this one has ended."""

    def __init__(self, writer: Writer, idle: deque[Writer]) -> None:
        self._writer, self._idle = writer, idle

    def __del__(self) -> None:
        self._idle.append(self._writer)


class Session:
    """What `probe` holds while it is live. A forked child that says nothing leaves no trace."""

    def __init__(
        self,
        directory: Path,
        *,
        collector: bool,
        ring: ModuleType | None = None,
        segments_max: int | None = None,
    ) -> None:
        """`ring`: what writers' places are made of, where it is compiled. `segments_max`: flight
        mode, as `Roller` says."""
        self.directory = directory
        self._segments_max = segments_max
        self._said_again = 0  # facts, since flight mode may have made room of them
        self.ring = ring
        self.facts: list[tuple[Fact, dict[str, Any]]] = []  # what a forked child says again
        self.orders = itertools.count(1)
        self.requests = itertools.count(1)
        self._collector = spawn.Keeper(directory) if collector else None
        self._gone = False  # the directory, and somebody was told
        self.local = threading.local()
        self._idle: deque[Writer] = deque()
        self._writers: list[Writer] = []
        self._lock = Lock()
        self._control: Control | None = None
        self._roller: Roller | None = None

    def register(self) -> None:
        """Take part from now on.

        Raises:
            OSError: the directory can't be made, can't be written, or is full.
        """
        # A trace tells who asked for what: it is for this user alone, unless somebody made the
        # directory for others.
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._control = Control(self.directory)
        self._roller = Roller(
            self.directory,
            self._control.process,
            report=self._control.report,
            idle=self._watch,
            segments_max=self._segments_max,
            dropped=self._make_room,
        )
        self._roller.start()
        self._watch()

    def _watch(self) -> None:
        """From time to time: a collector runs, and what is written can still be found."""
        try:
            os.stat(self.directory)
            gone = False
        except OSError as error:  # Who may not look doesn't know.
            gone = isinstance(error, FileNotFoundError)
        if not gone:
            if self._collector:
                self._collector.check()
        elif not self._gone:
            self._gone = True
            # The mapped segments take what is said all the same, so nothing is counted as lost.
            sys.stderr.write(
                f"slotscope: {self.directory} is gone, so this process is traced no more. "
                "Start it again with a trace directory that stays.\n"
            )

    def _make_room(self, oldest: Segment) -> None:
        """On the roller's thread: what the segment may have told of the process is said again, in
        a segment of that thread's own, which stays."""
        assert self._control is not None
        self._control.keep_from(oldest.block, oldest.next_seq)
        voice: Voice | None = getattr(self.local, "voice", None)
        if voice is None:
            voice = self.join()
        while self._said_again < len(self.facts):
            voice.state(*self.facts[self._said_again])
            self._said_again += 1

    def child(self) -> Session:
        """The session of a process that was forked from this one; not yet registered."""
        if self._control is not None:
            self._control.let_go()
        child = Session(
            self.directory,
            collector=self._collector is not None,
            ring=self.ring,
            segments_max=self._segments_max,
        )
        child.facts = list(self.facts)
        return child

    def stop(self) -> None:
        """Seal the segments and leave the trace."""
        for writer in self._writers:
            writer.close()
        if self._roller is not None:
            self._roller.stop()
        if self._control is not None:
            self._control.stop()

    def lost_count(self) -> int:
        """Events of this process that are not stored."""
        return self._control.lost_count() if self._control is not None else 0

    def join(self) -> Voice:
        """A voice for the calling thread, which keeps it in `local.voice`. Never raises."""
        with self._lock:
            fresh = self._control is None
            if fresh:
                try:
                    self.register()
                except OSError as error:
                    # Only after a fork: an explicit start has raised this to its caller.
                    sys.stderr.write(f"slotscope: this process is not traced: {error}\n")
            writer = self._writer()
            voice: Voice = writer or Overflow(self._control, self.orders)
            self.local.voice = voice
            if writer is not None:
                self.local.seat = _Seat(writer, self._idle)
                if self.ring is not None:
                    self.ring.attach(writer.place)
            for fact, content in self.facts if fresh else ():
                voice.state(fact, content)
            return voice

    def _writer(self) -> Writer | None:
        """One that an ended thread has left, or a new one; None if there are too many."""
        if self._idle:
            return self._idle.popleft()
        if self._control is None or self._roller is None or not self._control.blocks:
            return None
        place = Place(self.orders) if self.ring is None else self.ring.Ring(self.orders)
        block = self._control.blocks.popleft()
        writer = Writer(self._control, block, self._roller, self.orders, place)
        self._writers.append(writer)
        return writer
