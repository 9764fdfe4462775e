"""How records, segments and control files lie on disk. Written by `writer`, read by `segment`.

All integers are little-endian. A record is

    header    40 bytes: crc32 of the record with this field zero, size | op << 24, seq, order,
              time_ns, mask of the columns given as one value, mask of those given as a list, n
              (a writer packs it as five words, which takes it half the time that eight fields do)
    ones      the single values, in `COLUMNS` order, padded to 8 bytes
    lists     the lists of n values, in `COLUMNS` order, the whole padded to 8 bytes

`COLUMNS` is sorted by width, so every value is aligned. A record whose op is not an `Op` but a
`Fact` carries UTF-8 JSON instead of columns.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from .event import ENUMS, columns

VERSION = 1
"""Of everything in a trace directory. A reader refuses any other."""

EVENT_COLUMNS = tuple(columns())
"""(name, dtype, meaning) of every column of an event. `columns` itself takes a millisecond."""

NULL32 = -(2**31)
NULL64 = -(2**63)

ALIGN = 8
HEADER = "<QqqqQ"
"""`tag_word`, seq, order, time_ns, `shape_word`: the fields of `HEADER_DTYPE`."""
HEADER_SIZE = struct.calcsize(HEADER)
HEADER_DTYPE = np.dtype(
    [
        ("crc", "<u4"),
        ("tag", "<u4"),
        ("seq", "<i8"),
        ("order", "<i8"),
        ("time_ns", "<i8"),
        ("ones", "<u4"),
        ("lists", "<u2"),
        ("n", "<u2"),
    ]
)
SIZE_MASK = (1 << 24) - 1
OP_SHIFT = 24
COUNT_MAX = 65535


def tag_word(size: int, op: int) -> int:
    """The first word of a record's header, its checksum still zero."""
    return (size | op << OP_SHIFT) << 32


def shape_word(ones: int, lists: int, n: int) -> int:
    """The last word of a record's header: what it carries, for how many events."""
    return ones | lists << 32 | n << 48


class Fact(IntEnum):
    """Records that are no events. The codes lie above every `Op`."""

    REQUEST = 60
    HOOK = 61
    NOTE = 62
    GAP = 63


OP_CODES = 64
"""Codes of ops and facts are below this."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a record may carry."""

    name: str
    argument: str  # how `probe.emit` calls it
    code: str  # of `struct`
    dtype: np.dtype[np.generic]
    bit: int  # of the masks
    listable: bool


# The writer and the reader know these from the record's place or header, or derive them.
_IMPLIED = {
    "process",
    "writer",
    "seq",
    "order",
    "position",
    "time_ns",
    "op",
    "generation",
    "src_generation",
}
_SCALAR = {*ENUMS, "forward", "micro_batch", "stream", "launch", "pool", "amends"}
_CODES = {8: "q", 4: "i", 1: "B"}


def _columns() -> tuple[Column, ...]:
    """Listable columns come first, so that their bits fit the 16 of the list mask."""
    carried = [(n, d) for n, d, _ in EVENT_COLUMNS if n not in _IMPLIED]
    ranked = sorted(carried, key=lambda c: (c[0] in _SCALAR, -c[1].itemsize))
    bits = {name: 1 << i for i, (name, _) in enumerate(ranked)}
    return tuple(
        Column(n, "slots" if n == "slot" else n, _CODES[d.itemsize], d, bits[n], n not in _SCALAR)
        for n, d in sorted(carried, key=lambda c: -c[1].itemsize)
    )


COLUMNS = _columns()
BY_ARGUMENT = {c.argument: c for c in COLUMNS}

SEGMENT_MAGIC = b"SLOTSEG\n"
SEGMENT_SIZE = 4 << 20
SEGMENT_HEADER = "<8sIIIIqqI"
"""magic, version, process, number, size, monotonic_ns, realtime_ns, crc32 of all before it."""
SEGMENT_HEADER_DATA = 128
"""Where records begin. Before it lie the words that change, as int64:"""
WORD_OWNER = 12  # writer + 1; 0 while the segment waits to be used
WORD_ORDINAL = 13  # which segment of its writer
WORD_SEALED = 14  # 1: its writer has moved on
WORD_COMMIT = 15  # events << 24 | bytes; published last
COMMIT_SHIFT = 24

CONTROL_MAGIC = b"SLOTCTL\n"
CONTROL_HEADER = "<8sIIIIqqqI"
"""magic, version, process, pid, size of the identity, start ticks, monotonic_ns, realtime_ns,
crc32 of all before it and of the identity (JSON, at `IDENTITY_AT`)."""
IDENTITY_AT = 64
IDENTITY_SIZE_MAX = 1984
ERROR_AT = 2048
ERROR_SIZE = 512
STATE_AT = 2560  # int64: 0 running, 1 stopped
BLOCKS_AT = 4096
BLOCKS = 128
"""One for each writer; block 0 counts for threads that got none."""
BLOCK_REASONS = 2  # the ones that a writer counts
BLOCK_WORDS = 160
PROCESSES_MAX = (1 << 23) // BLOCKS - 1
"""So that `writer << 40 | seq` is a positive int64."""
BLOCK_OPEN, BLOCK_FIRST_ORDER, BLOCK_LAST_ORDER, BLOCK_FIRST_NS, BLOCK_LAST_NS = range(5)
BLOCK_SEGMENTS = 5  # that its writer has begun
BLOCK_EVENTS = 6  # that lie in those before the last one; in all, once it has stopped
BLOCK_KEPT_FROM = 7  # seq of the first event that flight mode has not made room of
BLOCK_LOST = 16  # + reason * OP_CODES + op
CONTROL_SIZE = BLOCKS_AT + BLOCKS * BLOCK_WORDS * 8


class Reason(IntEnum):
    """Why events are missing."""

    FULL = 0  # no prepared segment: the disk is full, unwritable, or slower than the writer
    REFUSED = 1  # a call with arguments that can't be stored, or from inside another call
    DAMAGED = 2  # found by a reader: bytes of a segment are not what was written
    OVERWRITTEN = 3  # found by a reader: flight mode has made room of older segments


CONTROL_FILES = f"p{'[0-9]' * 6}.ctl"
SEGMENT_FILES = f"p{'[0-9]' * 6}-{'[0-9]' * 6}.seg"


def segment_name(process: int, number: int) -> str:
    """File name of a segment."""
    return f"p{process:06d}-{number:06d}.seg"


def control_name(process: int) -> str:
    """File name of a process's control file."""
    return f"p{process:06d}.ctl"
