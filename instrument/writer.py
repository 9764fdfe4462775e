"""Writer: puts one thread's records into segments. No lock, no system call, no growth."""

from __future__ import annotations

import contextlib
import json
import struct
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from . import layout
from .control import Control
from .event import Op
from .layout import Column, Fact, Reason
from .roller import Roller, Segment, seal

_NULLS = {"i": layout.NULL32, "q": layout.NULL64}
_ZEROS = b"\0" * layout.ALIGN
_FACT_HEADER = struct.Struct(layout.HEADER)

PLANS_MAX = 4096

Pack = Callable[..., bytes]


class RecordError(ValueError):
    """Arguments of a call that can't be stored."""


class Plan:
    """How the calls that give a certain set of arguments are stored. One for each call site."""

    __slots__ = ("columns", "mask", "pack", "pick", "single", "size")

    def __init__(self, arguments: tuple[str, ...]) -> None:
        unknown = [a for a in arguments if a not in layout.BY_ARGUMENT]
        if unknown:
            raise RecordError(f"probe.emit has no argument {', '.join(unknown)}")
        self.columns = tuple(c for c in layout.COLUMNS if c.argument in arguments)
        self.mask = sum(c.bit for c in self.columns)
        self.pick = _picker([c.argument for c in self.columns])
        self.pack, self.size = _packer(self.mask)
        self.single = True  # The latest such call had one value for every argument.


def _plan(arguments: tuple[str, ...]) -> Plan:
    if len(_PLANS) == PLANS_MAX:
        _PLANS.clear()  # Calls with arguments made up at run time; start afresh, stay bounded.
    plan = _PLANS[arguments] = Plan(arguments)
    return plan


def _picker(names: list[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """From arguments, their values in column order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: tuple(given[name] for name in names)


_PACKERS: dict[int, tuple[Pack, int]] = {}
_PLANS: dict[tuple[str, ...], Plan] = {}


def _packer(mask: int) -> tuple[Pack, int]:
    """What packs a header and the single values of a mask, and the size of that in bytes."""
    if mask not in _PACKERS:
        codes = "".join(c.code for c in layout.COLUMNS if c.bit & mask)
        size = struct.calcsize(layout.HEADER + codes)
        padding = -size % layout.ALIGN
        packer = struct.Struct(f"{layout.HEADER}{codes}{padding}x")
        _PACKERS[mask] = packer.pack, size + padding
    return _PACKERS[mask]


def _nbytes(values: Any) -> int:
    return len(values) * values.itemsize


def _named(op: int) -> str:
    for codes in (Op, Fact):
        with contextlib.suppress(ValueError):
            return codes(op).name
    return f"op {op}"


def _packed(values: Any, column: Column) -> Any:
    """A list of values as a contiguous buffer of the column's type.

    Raises:
        RecordError, TypeError, OverflowError: the values are no integers, or too big.
    """
    if not column.listable:
        raise RecordError(f"{column.argument} takes one value for the whole call")
    code, dtype = column.code, column.dtype
    if type(values) is np.ndarray:
        if values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous:
            return values
    elif type(values) is list or type(values) is tuple:
        try:
            return array(code, values)
        except TypeError:  # A null among them, or a NumPy scalar.
            null = _NULLS[code]
            return array(code, [null if v is None else int(v) for v in values])
    return _converted(np.asarray(values), dtype)


def _converted(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if values.ndim != 1 or values.dtype.kind not in "iub":
        raise RecordError(f"a column of shape {values.shape} and dtype {values.dtype}")
    packed = np.ascontiguousarray(values, dtype)
    if values.dtype.itemsize >= dtype.itemsize and not np.array_equal(packed, values):
        raise OverflowError(f"a value of {values.dtype} does not fit {dtype}")
    return packed


class Writer:
    """Appends records for one thread. Its calls never raise, block, or grow memory."""

    __slots__ = (
        "_block",
        "_busy",
        "_control",
        "_crcs",
        "_end",
        "_events",
        "_gap",
        "_map",
        "_ordinal",
        "_orders",
        "_reported",
        "_roller",
        "_segment",
        "_seq",
        "_words",
    )

    def __init__(self, control: Control, block: int, roller: Roller, orders: Iterator[int]) -> None:
        self._control, self._block = control, block
        self._roller, self._orders = roller, orders
        self._segment: Segment | None = None
        self._map: Any = None
        self._words: Any = None
        self._crcs: Any = None
        self._end = layout.SEGMENT_SIZE  # Full, so that the first record takes a segment.
        self._events = 0  # in this segment
        self._seq = 0
        self._ordinal = -1
        self._busy = False
        self._gap = False
        self._reported = [0] * (layout.BLOCK_REASONS * layout.OP_CODES)

    def append(self, op: Op, given: dict[str, Any]) -> int:
        """Store a call of `probe.emit`; its order. What can't be stored is counted."""
        order = next(self._orders)
        if self._busy:
            # A signal handler or a finaliser spoke from inside this very function.
            self._lose(op, 1, order, Reason.REFUSED)
            return order
        self._busy = True
        try:
            if self._gap:
                self._close_gap()
            self._append(op, given, order)
        except Exception as error:
            self._refuse(op, given, order, error)
        finally:
            self._busy = False
        return order

    def state(self, fact: Fact, content: dict[str, Any]) -> None:
        """Store a fact: a request, a hook, a note."""
        order = next(self._orders)
        if self._busy:
            self._lose(fact, 1, order, Reason.REFUSED)
            return
        self._busy = True
        try:
            if self._gap:
                self._close_gap()
            if not self._fact(fact, content, order):
                self._lose(fact, 1, order, Reason.FULL)
        except Exception as error:
            self._refuse(fact, {}, order, error)
        finally:
            self._busy = False

    def close(self) -> None:
        """Seal the segment. Only when the thread says nothing more."""
        self._busy = True
        if self._segment is not None:
            self._words = self._map = self._crcs = None
            seal(self._segment)

    def _append(self, op: Op, given: dict[str, Any], order: int) -> None:
        arguments = tuple(given)
        plan = _PLANS.get(arguments)
        if plan is None:
            plan = _plan(arguments)
        values = plan.pick(given)
        now = time.monotonic_ns()
        record, n = None, 1
        if plan.single:
            tag = plan.size | op << layout.OP_SHIFT
            try:
                record = plan.pack(0, tag, self._seq, order, now, plan.mask, 0, 1, *values)
            except (TypeError, struct.error):  # A list, a null, or a value out of range.
                plan.single = False
        if record is None:
            record, n = self._mixed(plan, values, op, order, now)
            if n == 0:
                return
        if not self._publish(record, n):
            self._lose(op, n, order, Reason.FULL)

    def _mixed(
        self, plan: Plan, values: tuple[Any, ...], op: int, order: int, now: int
    ) -> tuple[bytes, int]:
        """A record with lists or nulls, and its number of events."""
        ones, lists, n = 0, 0, -1
        single: list[int] = []
        many: list[Any] = []
        for column, value in zip(plan.columns, values, strict=True):
            if value is None:
                continue
            if isinstance(value, (int, np.integer)):
                ones |= column.bit
                single.append(value)
                continue
            packed = _packed(value, column)
            if n not in (-1, len(packed)):
                raise RecordError(f"{column.argument} has {len(packed)} values, others have {n}")
            n = len(packed)
            lists |= column.bit
            many.append(packed)
        plan.single = n == -1 and ones == plan.mask
        n = 1 if n == -1 else n
        if n > layout.COUNT_MAX:
            raise RecordError(f"{n} slots in one call; {layout.COUNT_MAX} is the most")
        pack, size = _packer(ones)
        size += sum(map(_nbytes, many))
        padding = -size % layout.ALIGN
        tag = (size + padding) | op << layout.OP_SHIFT
        head = pack(0, tag, self._seq, order, now, ones, lists, n, *single)
        return b"".join((head, *many, _ZEROS[:padding])), n

    def _fact(self, fact: Fact, content: dict[str, Any], order: int) -> bool:
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        text = body.encode("utf-8", "backslashreplace")
        text += b" " * (-len(text) % layout.ALIGN)
        size = layout.HEADER_SIZE + len(text)
        if size > layout.SEGMENT_SIZE // 2:
            raise RecordError(f"a fact of {size} bytes; {layout.SEGMENT_SIZE // 2} is the most")
        tag = size | fact << layout.OP_SHIFT
        now = time.monotonic_ns()
        head = _FACT_HEADER.pack(0, tag, self._seq, order, now, 0, 0, 0)
        return self._publish(head + text, 0)

    def _publish(self, record: bytes, n: int) -> bool:
        """Copy a record in and commit it; False if there is no room."""
        at = self._end
        end = at + len(record)
        if end > layout.SEGMENT_SIZE:
            if not self._roll():
                return False
            at = self._end
            end = at + len(record)
        self._map[at:end] = record
        self._crcs[at >> 2] = zlib.crc32(record)
        # An interrupt between these lines leaves a record that the next commit publishes too.
        self._end = end
        self._seq += n
        self._events += n
        self._words[layout.WORD_COMMIT] = self._events << layout.COMMIT_SHIFT | end
        return True

    def _roll(self) -> bool:
        """Go on in the next segment, if one is ready."""
        fresh = self._roller.take()
        if fresh is None:
            return False
        if self._segment is not None:
            self._words[layout.WORD_SEALED] = 1
            self._roller.retire(self._segment)
        self._ordinal += 1
        self._segment = fresh
        self._map, self._words, self._crcs = fresh.map, fresh.words, fresh.crcs
        self._end, self._events = layout.SEGMENT_HEADER_DATA, 0
        self._words[layout.WORD_ORDINAL] = self._ordinal
        self._words[layout.WORD_OWNER] = self._control.writer(self._block) + 1
        return True

    def _lose(self, op: int, events: int, order: int, reason: Reason) -> None:
        self._control.lose(self._block, op, events, order, reason)
        self._gap = True

    def _refuse(self, op: int, given: dict[str, Any], order: int, error: Exception) -> None:
        slots = given.get("slots")
        try:
            events = len(slots)
        except TypeError:
            events = 1
        try:
            self._lose(op, events, order, Reason.REFUSED)
            self._control.report(f"{_named(op)}: {type(error).__name__}: {error}")
        except Exception:
            pass  # An op that is no number: nothing to count it under, and nothing may be raised.

    def _close_gap(self) -> None:
        """Say in the sequence itself what was lost here, once there is room again."""
        lost = self._control.lost(self._block)
        counts = [
            [index // layout.OP_CODES, index % layout.OP_CODES, now - before]
            for index, (now, before) in enumerate(zip(lost, self._reported, strict=True))
            if now > before
        ]
        window = self._control.window(self._block)
        if self._fact(Fact.GAP, {"window": window, "lost": counts}, next(self._orders)):
            self._reported, self._gap = lost, False
            self._control.close_gap(self._block)
