"""Roller: keeps empty segments ready, so that no engine thread ever waits for the disk."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import struct
import time
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from . import layout
from .control import allocate

READY_MIN = 2
READY_MAX = 8
BURST_S = 0.25
"""Two segments taken within this: keep more ready."""
RETRY_S = 0.25
IDLE_S = 2.0
_LIBC = ctypes.CDLL(None)


class Segment:
    """A mapped segment, from waiting to sealed."""

    __slots__ = ("block", "crcs", "map", "next_seq", "path", "words")

    def __init__(self, path: Path, fresh: mmap.mmap) -> None:
        self.path = path
        self.map = fresh
        self.words = memoryview(fresh).cast("q")
        self.crcs = memoryview(fresh).cast("I")
        self.block = self.next_seq = 0  # of its writer, once it is full

    def close(self) -> None:
        """Unmap."""
        self.words.release()
        self.crcs.release()
        self.map.close()


_MADV_POPULATE_WRITE = 23  # Linux 5.14. Older kernels refuse it, and the pages come one by one.


def _populate(fresh: mmap.mmap) -> None:
    """Fault the pages in now, 4 MiB in 2-6 ms. ctypes lets go of the GIL meanwhile, unlike mmap."""
    first = ctypes.c_char.from_buffer(fresh)
    address = ctypes.addressof(first)
    _LIBC.madvise(ctypes.c_void_p(address), ctypes.c_size_t(len(fresh)), _MADV_POPULATE_WRITE)


def prepare(directory: Path, process: int, number: int) -> Segment:
    """A new segment on disk and in memory, its pages present, its header complete.

    Raises:
        OSError: no room, no permission, no directory. Nothing is left behind.
    """
    path = directory / layout.segment_name(process, number)
    hidden = path.with_suffix(".new")
    fresh = allocate(hidden, layout.SEGMENT_SIZE)
    _populate(fresh)
    head = struct.pack(
        layout.SEGMENT_HEADER[:-1],
        layout.SEGMENT_MAGIC,
        layout.VERSION,
        process,
        number,
        layout.SEGMENT_SIZE,
        time.monotonic_ns(),
        time.time_ns(),
    )
    fresh[: len(head) + 4] = head + struct.pack("<I", zlib.crc32(head))
    segment = Segment(path, fresh)
    segment.words[layout.WORD_COMMIT] = layout.SEGMENT_HEADER_DATA
    hidden.rename(path)
    return segment


class Roller:
    """Prepares segments on a thread of its own. `take` never waits."""

    def __init__(
        self,
        directory: Path,
        process: int,
        *,
        report: Callable[[str], None],
        idle: Callable[[], None] = lambda: None,
        segments_max: int | None = None,
        dropped: Callable[[Segment], None] = lambda _: None,
    ) -> None:
        """`report` hears why no segment can be made; `idle` runs every two seconds.

        With `segments_max` the oldest full segments make room for new ones, once there are so many
        or the disk is full. `dropped` hears of each before it is removed.
        """
        self._directory, self._process = directory, process
        self._report, self._idle = report, idle
        self._ready: deque[Segment] = deque()
        self._full: deque[Segment] = deque()
        self._segments_max, self._dropped = segments_max, dropped
        self._kept: deque[Segment] = deque()  # full ones, closed, the oldest first
        self._count = 0  # of segments on disk
        self._wanted = READY_MIN
        self._ready_max = READY_MAX if segments_max is None else segments_max // 2
        self._numbers = itertools.count()
        self._taken_s = 0.0
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._thread = Thread(target=self._run, name="slotscope-roller", daemon=True)

    def start(self) -> None:
        """Make the first segments now, then go on in the background.

        Raises:
            OSError: the directory has no room for even one.
        """
        while len(self._ready) < self._wanted:
            self._add()
        self._thread.start()

    def start_later(self) -> None:
        """Go on in the background; until the first segment is there, `take` has none."""
        self._thread.start()

    def take(self) -> Segment | None:
        """A ready segment, or None: the caller drops and counts."""
        try:
            segment = self._ready.popleft()
        except IndexError:
            return None
        self._calls.put(True)
        return segment

    def first(self) -> Segment | None:
        """The same for a thread's first word, which may wait for the disk: threads that start
        together would else find the shelf empty."""
        segment = self.take()
        if segment is None:
            try:
                segment = self._make()
            except OSError as error:
                self._report(f"no segment could be made in {self._directory}: {error}")
        return segment

    def retire(self, full: Segment) -> None:
        """Unmap a segment soon, off the caller's thread."""
        self._full.append(full)

    def stop(self) -> None:
        """End the thread and remove what was not used."""
        self._calls.put(False)
        self._thread.join()
        while self._ready:
            segment = self._ready.popleft()
            segment.close()
            segment.path.unlink(missing_ok=True)

    def _add(self) -> None:
        self._ready.append(self._make())

    def _make(self) -> Segment:
        fresh = prepare(self._directory, self._process, next(self._numbers))
        self._count += 1
        return fresh

    def _drop(self) -> bool:
        """Make room, if that is wanted and there is something to drop."""
        if self._segments_max is None or not self._kept:
            return False
        oldest = self._kept[0]
        self._dropped(oldest)
        try:
            oldest.path.unlink(missing_ok=True)
        except OSError:  # Nothing can be written here either, as the caller finds out and tells.
            return False
        self._kept.popleft()
        self._count -= 1
        return True

    def _run(self) -> None:
        fine = True
        while True:
            short = len(self._ready) < self._wanted
            try:
                go_on = self._calls.get(timeout=RETRY_S if short and not fine else IDLE_S)
            except Empty:
                self._idle()
            else:
                if not go_on:
                    return
                self._adapt()
            while self._full:
                full = self._full.popleft()
                full.close()
                self._kept.append(full)
            fine = self._fill()

    def _adapt(self) -> None:
        """Bursts empty the shelf faster than the disk fills it, so keep more on it."""
        now = time.monotonic()
        if now - self._taken_s < BURST_S:
            self._wanted = min(self._wanted * 2, self._ready_max)
        self._taken_s = now

    def _fill(self) -> bool:
        while len(self._ready) < self._wanted:
            if self._segments_max is not None and self._count >= self._segments_max:
                self._drop()
            try:
                self._add()
            except OSError as error:
                if not self._drop():
                    self._report(f"no segment could be made in {self._directory}: {error}")
                    return False
        return True


def seal(segment: Segment) -> None:
    """Give back the unused tail of a segment that gets no more records. Not for the hot path."""
    size = segment.words[layout.WORD_COMMIT] & layout.SIZE_MASK
    segment.words[layout.WORD_SEALED] = 1
    segment.close()
    with contextlib.suppress(OSError):
        os.truncate(segment.path, size)
