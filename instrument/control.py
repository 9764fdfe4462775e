"""Control: the file by which a process registers in a trace, and in which it counts what it loses.

It is allocated in full and mapped at the start, so that counting needs neither disk nor memory
later, and the counts survive a SIGKILL. Layout: `layout`.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
import sys
import time
import zlib
from collections import deque
from hashlib import sha256
from pathlib import Path
from threading import Lock

import numpy as np

from . import layout
from .liveness import hold, home, lives, start_ticks


class ControlError(OSError):
    """A process that can't register in a trace directory, or a control file that can't be read."""


def allocate(path: Path, size: int) -> mmap.mmap:
    """A new shared file mapping with its blocks on disk. The file must not exist.

    A sparse file would do until the disk is full: then a store into it kills the process with
    SIGBUS. `posix_fallocate` fails here instead.

    Raises:
        OSError: the directory can't be written, or has no room. Nothing is left behind.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


class Control:
    """The control file of this process, open for writing. `blocks` holds the free ones."""

    def __init__(self, directory: Path) -> None:
        """Register in `directory`, under the lowest number that no process of the trace has had.

        Raises:
            OSError: the directory can't be written or is full.
        """
        self.process, self._map = _claim(directory)
        self._words = memoryview(self._map).cast("q")
        self.path = directory / layout.control_name(self.process)
        self.blocks = deque(range(1, layout.BLOCKS))
        self._overflow = Lock()
        identity = _identity()
        head = struct.pack(
            layout.CONTROL_HEADER[:-1],
            layout.CONTROL_MAGIC,
            layout.VERSION,
            self.process,
            os.getpid(),
            len(identity),
            start_ticks(os.getpid()),
            time.monotonic_ns(),
            time.time_ns(),
        )
        self._map[layout.IDENTITY_AT : layout.IDENTITY_AT + len(identity)] = identity
        crc = struct.pack("<I", zlib.crc32(identity, zlib.crc32(head)))
        self._map[: len(head) + 4] = head + crc
        self._lock: int | None = hold(self.path.with_suffix(".new"))
        self.path.with_suffix(".new").rename(self.path)

    def writer(self, block: int) -> int:
        """The number, unique in the trace, of the writer that has this block."""
        return self.process * layout.BLOCKS + block

    def lose(self, block: int, op: int, events: int, order: int, reason: layout.Reason) -> None:
        """Count events that are not stored. Only the owner of the block may say so."""
        base = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
        words, now = self._words, time.monotonic_ns()
        if not words[base + layout.BLOCK_OPEN]:
            words[base + layout.BLOCK_FIRST_ORDER] = order
            words[base + layout.BLOCK_FIRST_NS] = now
            words[base + layout.BLOCK_OPEN] = 1
        words[base + layout.BLOCK_LAST_ORDER] = order
        words[base + layout.BLOCK_LAST_NS] = now
        words[base + layout.BLOCK_LOST + reason * layout.OP_CODES + op] += events

    def lose_shared(self, op: int, events: int, order: int, reason: layout.Reason) -> None:
        """The same for a thread that has no block."""
        with self._overflow:
            self.lose(0, op, events, order, reason)

    def window(self, block: int) -> tuple[int, int, int, int]:
        """First and last order, first and last time of the gap that is open in the block."""
        base = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
        first, last = layout.BLOCK_FIRST_ORDER, layout.BLOCK_LAST_NS + 1
        a, b, c, d = self._words[base + first : base + last]
        return a, b, c, d

    def lost(self, block: int) -> list[int]:
        """Totals by reason * OP_CODES + op."""
        base = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
        first = base + layout.BLOCK_LOST
        return self._words[first : first + layout.BLOCK_REASONS * layout.OP_CODES].tolist()

    def lost_count(self) -> int:
        """Events of the whole process, for any reason."""
        return sum(sum(self.lost(block)) for block in range(layout.BLOCKS))

    def close_gap(self, block: int) -> None:
        """The open gap has its record; the next loss opens another."""
        self._words[layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS + layout.BLOCK_OPEN] = 0

    def progress(self, block: int, segments: int, events: int) -> None:
        """How many segments the writer has begun, and how many events it has surely published: a
        reader then knows when the last of them are missing."""
        base = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
        self._words[base + layout.BLOCK_SEGMENTS] = segments
        self._words[base + layout.BLOCK_EVENTS] = events

    def keep_from(self, block: int, seq: int) -> None:
        """Events of the writer before this one make room, by intent."""
        base = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
        self._words[base + layout.BLOCK_KEPT_FROM] = seq

    def report(self, error: str) -> None:
        """Keep the latest error for `slotscope doctor`."""
        text = error.encode()[: layout.ERROR_SIZE].ljust(layout.ERROR_SIZE, b"\0")
        self._map[layout.ERROR_AT : layout.ERROR_AT + layout.ERROR_SIZE] = text

    def stop(self) -> None:
        """The process leaves the trace of its own will: its end is no crash."""
        self._words[layout.STATE_AT // 8] = 1
        self.let_go()

    def let_go(self) -> None:
        """Hold the lock no more: at the end, and in a forked child, which is not its parent."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _identity() -> bytes:
    """Who this process is, as JSON of at most `layout.IDENTITY_SIZE_MAX` bytes."""
    command = " ".join(sys.orig_argv).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    told = {
        "command": command[:1024],
        "host": os.uname().nodename[:64],
        "python": sys.version.split()[0],
        "home": home(),
    }
    # The value is cut, not the JSON. How long it gets there is known only once it is written.
    while len(text := json.dumps(told, ensure_ascii=False).encode()) > layout.IDENTITY_SIZE_MAX:
        told["command"] = told["command"][: len(told["command"]) * 3 // 4]
    return text


def _claim(directory: Path) -> tuple[int, mmap.mmap]:
    """A process number and its mapped `.new` file, which becomes visible once it is filled in."""
    taken = [int(p.name[1:7]) for p in directory.glob(layout.CONTROL_FILES)]
    number = max(taken, default=-1) + 1
    while True:
        path = directory / layout.control_name(number)
        try:
            fresh = allocate(path.with_suffix(".new"), layout.CONTROL_SIZE)
        except FileExistsError:
            number += 1
            continue
        if path.exists():  # Somebody went through .new to .ctl between our look and our claim.
            path.with_suffix(".new").unlink()
            number += 1
            continue
        if number > layout.PROCESSES_MAX:
            path.with_suffix(".new").unlink()
            raise ControlError(errno.ENOSPC, f"{directory} has {number} processes already")
        return number, fresh


def uid(path: Path) -> int:
    """64 bits of a control file's header: random, and the same for every reader, damaged or not.

    Raises:
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        header = file.read(struct.calcsize(layout.CONTROL_HEADER))
    return int.from_bytes(sha256(header).digest()[:8], "little")


class ControlImage:
    """What a control file said when it was last read. Its process may be alive, or long dead."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            ControlError: no control file, or a damaged one (EINVAL); of another version (ENOTSUP).
            OSError: it can't be read.
        """
        self.path = path
        data = path.read_bytes()
        size = struct.calcsize(layout.CONTROL_HEADER)
        if len(data) < layout.CONTROL_SIZE or data[:8] != layout.CONTROL_MAGIC:
            raise ControlError(errno.EINVAL, "no control file of slotscope", str(path))
        fields = struct.unpack(layout.CONTROL_HEADER, data[:size])
        _, version, self.process, self.pid, length, self._ticks, *anchor, crc = fields
        if version != layout.VERSION:
            raise ControlError(
                errno.ENOTSUP,
                f"it has version {version}, this slotscope reads version {layout.VERSION}; "
                "read it with the slotscope that wrote it",
                str(path),
            )
        identity = data[layout.IDENTITY_AT : layout.IDENTITY_AT + length]
        if crc != zlib.crc32(identity, zlib.crc32(data[: size - 4])):
            raise ControlError(errno.EINVAL, "the control file is damaged", str(path))
        self.anchor: tuple[int, int] = (anchor[0], anchor[1])
        try:
            self.identity: dict[str, str] = json.loads(identity)
        except ValueError as error:
            raise ControlError(
                errno.EINVAL, f"its identity is no JSON: {error}", str(path)
            ) from error
        self._over = False
        self._take(data)
        self.refresh()

    def refresh(self) -> None:
        """Read again what may have changed. Nothing does once the process is gone, or the file."""
        if not self._over:
            over = not self._lives()
            try:
                self._take(self.path.read_bytes())
            except FileNotFoundError:
                over = True
            self._over = over

    def _take(self, data: bytes) -> None:
        error = data[layout.ERROR_AT : layout.ERROR_AT + layout.ERROR_SIZE]
        self.error = error.rstrip(b"\0").decode("utf-8", "replace")
        self._words = memoryview(data).cast("q")

    def _lives(self) -> bool:
        return lives(self.path, self.pid, self._ticks, self.identity.get("home", ""))

    @property
    def state(self) -> str:
        """`running`, `stopped` of its own will, or `crashed`."""
        if self._words[layout.STATE_AT // 8]:
            return "stopped"
        return "running" if not self._over and self._lives() else "crashed"

    def losses(self) -> dict[int, dict[tuple[int, int], int]]:
        """Events lost so far: writer -> (reason, op) -> count, each above 0."""
        counts = np.array(self._words[layout.BLOCKS_AT // 8 :], np.int64)
        blocks = counts[: layout.BLOCKS * layout.BLOCK_WORDS].reshape(layout.BLOCKS, -1)
        found: dict[int, dict[tuple[int, int], int]] = {}
        for block, index in np.argwhere(blocks[:, layout.BLOCK_LOST :] > 0).tolist():
            key = index // layout.OP_CODES, index % layout.OP_CODES
            count = int(blocks[block, layout.BLOCK_LOST + index])
            found.setdefault(self.process * layout.BLOCKS + block, {})[key] = count
        return found

    def progress(self) -> dict[int, tuple[int, int]]:
        """Writer -> segments that it has begun, and events that it has surely published."""
        found = {}
        for block in range(layout.BLOCKS):
            at = layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS
            if segments := self._words[at + layout.BLOCK_SEGMENTS]:
                events = self._words[at + layout.BLOCK_EVENTS]
                found[self.process * layout.BLOCKS + block] = segments, events
        return found

    def kept_from(self, writer: int) -> int:
        """Events of the writer before this one may have made room, by intent."""
        base = layout.BLOCKS_AT // 8 + writer % layout.BLOCKS * layout.BLOCK_WORDS
        return self._words[base + layout.BLOCK_KEPT_FROM]

    def window(self, writer: int) -> tuple[int, int, int, int] | None:
        """First and last order, first and last time of the writer's open gap, if it has one."""
        base = layout.BLOCKS_AT // 8 + writer % layout.BLOCKS * layout.BLOCK_WORDS
        if not self._words[base + layout.BLOCK_OPEN]:
            return None
        a, b, c, d = self._words[base + layout.BLOCK_FIRST_ORDER : base + layout.BLOCK_LAST_NS + 1]
        return a, b, c, d
