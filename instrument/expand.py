"""Expand: from records to columns of events, all records of one shape at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import layout
from .event import Source
from .layout import Fact
from .segment import Headers, Offsets, Records

Array = np.ndarray[Any, np.dtype[Any]]
Events = dict[str, Array]
"""Every column of `event.columns()`, all of one length; see `null` for what stands for null."""


@dataclass(frozen=True, slots=True)
class FactRecord:
    """A fact, its content as it was written."""

    fact: Fact
    seq: int  # of the writer's next event
    order: int
    time_ns: int
    content: dict[str, Any]


def null(dtype: np.dtype[Any]) -> int:
    """What stands for null in a column: the least value of a signed type, 0 of a code."""
    return int(np.iinfo(dtype).min)


def empty(count: int) -> Events:
    """Events of which nothing is known. The columns take no memory and can't be written."""
    return {name: absent(dtype, count) for name, dtype, _ in layout.EVENT_COLUMNS}


def absent(dtype: np.dtype[Any], count: int) -> Array:
    """A column of nulls that takes no memory."""
    return np.broadcast_to(dtype.type(null(dtype)), count)


def is_absent(values: Array) -> bool:
    """The column is such a one."""
    return len(values) == 0 or values.strides == (0,)


def concatenate(parts: list[Events]) -> Events:
    """All events of the parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    count = sum(len(p["seq"]) for p in parts)
    joined = empty(count)
    for name in joined if count else ():
        columns_ = [p[name] for p in parts]
        if not all(map(is_absent, columns_)):
            joined[name] = np.concatenate(columns_)
    return joined


def events(records: Records, *, process: int, writer: int) -> Events:
    """The events of the records, in the order they were written; generations are still null."""
    headers = records.headers
    ops = headers["tag"] >> layout.OP_SHIFT
    acts = ops < min(Fact)
    headers, offsets, ops = headers[acts], records.offsets[acts], ops[acts]
    counts = headers["n"].astype(np.int64)
    first = np.cumsum(counts) - counts
    owner, within = _ragged(counts)
    out = empty(len(owner))
    out["process"] = np.full(len(owner), process, np.int32)
    out["writer"] = np.full(len(owner), writer, np.int32)
    out["seq"] = headers["seq"][owner] + within
    for name in ("order", "time_ns"):
        out[name] = headers[name][owner]
    out["op"] = ops[owner].astype(np.uint8)
    out["source"] = np.full(len(owner), Source.HOST, np.uint8)
    out["pool"] = np.zeros(len(owner), np.int32)
    shapes = headers["ones"].astype(np.uint64) | headers["lists"].astype(np.uint64) << 32
    for shape in np.unique(shapes).tolist():
        alike = np.flatnonzero(shapes == shape)
        _fill(out, records.data, offsets[alike], counts[alike], first[alike], shape)
    known = out["launch"] != layout.NULL64
    out["position"] = np.where(known, out["launch"], out["order"])
    return out


def facts(records: Records) -> list[FactRecord]:
    """The records that are no events. One whose text is no JSON was not written by slotscope."""
    headers: Headers = records.headers
    ops = headers["tag"] >> layout.OP_SHIFT
    found = []
    for i in np.flatnonzero(ops >= min(Fact)).tolist():
        head, at = headers[i], int(records.offsets[i])
        end = at + (int(head["tag"]) & layout.SIZE_MASK)
        content = json.loads(records.data[at + layout.HEADER_SIZE : end])
        order, time_ns = int(head["order"]), int(head["time_ns"])
        found.append(FactRecord(Fact(int(ops[i])), int(head["seq"]), order, time_ns, content))
    return found


def _ragged(counts: Offsets) -> tuple[Offsets, Offsets]:
    """For each event, its record and its place in it."""
    owner = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
    return owner, within


def _fill(
    out: Events, data: bytes, offsets: Offsets, counts: Offsets, first: Offsets, shape: int
) -> None:
    """Write the columns of records that have the same columns, whatever their lengths.

    Args:
        offsets, counts, first: [R] in data, events of the record, row of its first event.
        shape: mask of single values | mask of lists << 32.
    """
    ones, lists = shape & 0xFFFFFFFF, shape >> 32
    owner, within = _ragged(counts)
    rows = first[owner] + within
    at = offsets + layout.HEADER_SIZE
    for column in layout.COLUMNS:
        if column.bit & ones:
            values = np.frombuffer(data, column.dtype, len(data) // column.dtype.itemsize)
            _written(out, column)[rows] = values[at // column.dtype.itemsize][owner]
            at = at + column.dtype.itemsize
    at = -(-at // layout.ALIGN) * layout.ALIGN
    for column in layout.COLUMNS:
        if column.bit & lists and column.listable:
            size = column.dtype.itemsize
            values = np.frombuffer(data, column.dtype, len(data) // size)
            _written(out, column)[rows] = values[(at // size)[owner] + within]
            at = at + counts * size


def _written(out: Events, column: layout.Column) -> Array:
    """The column as memory, from its first value on."""
    if is_absent(out[column.name]):
        out[column.name] = out[column.name].copy()
    return out[column.name]
