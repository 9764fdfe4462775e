"""Segment: the records of one segment file, walked and checked."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import layout, native

Headers = np.ndarray[Any, np.dtype[np.void]]
Offsets = np.ndarray[Any, np.dtype[np.int64]]

_HEAD = layout.SEGMENT_HEADER_DATA
_TAG = struct.Struct("<II")
_CRC_OF_NO_CRC = zlib.crc32(b"\0" * 4)
_COMPILED = native.load_walk()


class SegmentError(ValueError):
    """A file that is no segment of this version. The message names the path, and what to do."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment that are not what was written."""

    at: int
    size: int
    what: str


@dataclass(frozen=True, slots=True)
class Records:
    """Whole, checked records of one segment."""

    data: bytes  # of the part of the segment that was read, from a multiple of 8 on
    offsets: Offsets  # [R] of each record in data
    headers: Headers  # [R] of layout.HEADER_DTYPE
    end: int  # where in the segment the next reading starts
    damage: tuple[Damage, ...]


class SegmentFile:
    """A segment to read from, while its writer may still write.

    The file is kept neither open nor mapped, since a trace may have thousands, and Python keeps a
    descriptor for each mapping. Its words are those of the latest `refresh`.
    """

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            SegmentError: no segment, or of another version.
            OSError: it can't be read.
        """
        self.path = path
        head = self._head()
        self.process, self.number, self.anchor = self._header(head)
        self._words = memoryview(head).cast("q")
        self.refresh()

    def refresh(self) -> None:
        """Read the words again, which say how far the writer is.

        Raises:
            OSError: the file can't be read; it was removed, for example.
        """
        if not self.sealed:
            self._take(self._head())
            if self.sealed:
                # Read once more, so that the commit word is surely not older than the seal.
                self._take(self._head())

    def _head(self) -> bytes:
        with self.path.open("rb", buffering=0) as file:
            return file.read(_HEAD) or b""

    def _take(self, head: bytes) -> None:
        if len(head) == _HEAD:  # Somebody may have cut the file: then it said this much.
            self._words = memoryview(head).cast("q")

    def _header(self, head: bytes) -> tuple[int, int, tuple[int, int]]:
        size = struct.calcsize(layout.SEGMENT_HEADER)
        if len(head) < _HEAD or head[:8] != layout.SEGMENT_MAGIC:
            raise SegmentError(f"{self.path} is no segment of slotscope. Remove it to go on.")
        fields = struct.unpack(layout.SEGMENT_HEADER, head[:size])
        _, version, process, number, _, monotonic_ns, realtime_ns, crc = fields
        if version != layout.VERSION:
            raise SegmentError(
                f"{self.path} has version {version}; this slotscope reads version "
                f"{layout.VERSION}. Read it with the slotscope that wrote it."
            )
        if crc != zlib.crc32(head[: size - 4]):
            raise SegmentError(f"{self.path} has a damaged header. Remove it to go on.")
        return process, number, (monotonic_ns, realtime_ns)

    @property
    def writer(self) -> int | None:
        """Who writes it; None while it waits to be used."""
        owner = self._words[layout.WORD_OWNER]
        return owner - 1 if owner else None

    @property
    def ordinal(self) -> int:
        """Which segment of its writer it is, from 0."""
        return self._words[layout.WORD_ORDINAL]

    @property
    def sealed(self) -> bool:
        """Its writer has gone on to another."""
        return bool(self._words[layout.WORD_SEALED])

    @property
    def committed(self) -> tuple[int, int]:
        """Bytes, header included, and events that the writer has published."""
        word = self._words[layout.WORD_COMMIT]
        return word & layout.SIZE_MASK, word >> layout.COMMIT_SHIFT

    def read(self, start: int, end: int) -> Records:
        """Records from `start` to `end`, which are ends of records or `layout.SEGMENT_HEADER_DATA`.

        A record whose bytes are not what was written is left out and told as damage, with all that
        follows it if its size can't be trusted either.
        """
        with self.path.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
        offsets, changed, at = _walk(data)
        damage = [Damage(start + bad, _size(data, bad), "changed") for bad in changed.tolist()]
        if at < end - start:
            what = "cut off" if len(data) < end - start else "unreadable"
            damage.append(Damage(start + at, end - start - at, what))
        return Records(data, offsets, _headers(data, offsets), end, tuple(damage))


def _walk(data: bytes) -> tuple[Offsets, Offsets, int]:
    """Offsets of the whole records and of the changed ones, and where it could go no further."""
    if _COMPILED is None:
        return walk(data)
    good, bad, at = _COMPILED(data)
    return np.frombuffer(good, np.int64), np.frombuffer(bad, np.int64), at


def walk(data: bytes) -> tuple[Offsets, Offsets, int]:
    """The same in Python, at a fifth of the pace."""
    view, at, stop = memoryview(data), 0, len(data) - layout.HEADER_SIZE
    good: list[int] = []
    bad: list[int] = []
    unpack, crc32, seed, mask = _TAG.unpack_from, zlib.crc32, _CRC_OF_NO_CRC, layout.SIZE_MASK
    while at <= stop:
        crc, tag = unpack(data, at)
        size = tag & mask
        end = at + size
        if size < layout.HEADER_SIZE or size % layout.ALIGN or end > len(data):
            break
        (good if crc32(view[at + 4 : end], seed) == crc else bad).append(at)
        at = end
    return np.array(good, np.int64), np.array(bad, np.int64), at


def _size(data: bytes, at: int) -> int:
    size: int = _TAG.unpack_from(data, at)[1]
    return size & layout.SIZE_MASK


def _headers(data: bytes, offsets: Offsets) -> Headers:
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    step = np.arange(layout.HEADER_SIZE // 8)
    picked = words[(offsets // 8)[:, None] + step]
    headers: Headers = picked.reshape(-1).view(layout.HEADER_DTYPE)
    return headers
