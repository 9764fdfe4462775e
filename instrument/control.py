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
from pathlib import Path
from threading import Lock

from . import layout


class ControlError(OSError):
    """A process that can't register in a trace directory, or a control file that can't be read."""


def start_ticks(pid: int) -> int:
    """When the process started, in the kernel's ticks: tells a process from a later one of its pid.

    0 where the process is gone, is a zombie, or the kernel does not say.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == b"Z" else int(fields[19])


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
    """The control file of this process, open for writing. Blocks go out and come back by `blocks`."""

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
        identity = json.dumps(
            {
                "command": " ".join(sys.orig_argv)[:1024],
                "host": os.uname().nodename[:256],
                "python": sys.version.split()[0],
            }
        ).encode()[: layout.IDENTITY_SIZE_MAX]
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

    def close_gap(self, block: int) -> None:
        """The open gap has its record; the next loss opens another."""
        self._words[layout.BLOCKS_AT // 8 + block * layout.BLOCK_WORDS + layout.BLOCK_OPEN] = 0

    def report(self, error: str) -> None:
        """Keep the latest error for `slotscope doctor`."""
        text = error.encode()[: layout.ERROR_SIZE].ljust(layout.ERROR_SIZE, b"\0")
        self._map[layout.ERROR_AT : layout.ERROR_AT + layout.ERROR_SIZE] = text

    def stop(self) -> None:
        """The process leaves the trace of its own will: its end is no crash."""
        self._words[layout.STATE_AT // 8] = 1


def _claim(directory: Path) -> tuple[int, mmap.mmap]:
    """A process number and its mapped `.new` file, which becomes visible once it is filled in."""
    taken = [int(p.name[1:7]) for p in directory.glob("p*.ctl")]
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
