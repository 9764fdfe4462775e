"""Writer: puts one thread's records into segments. No lock, no system call, no growth."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Iterator
from time import monotonic_ns
from typing import Any
from zlib import crc32

from . import layout
from .control import Control
from .event import Op
from .layout import COMMIT_SHIFT, SEGMENT_SIZE, WORD_COMMIT, Fact, Reason, shape_word, tag_word
from .plan import PLANS, Plan, RecordError, plan
from .roller import Roller, Segment, seal

_FACT_HEADER = struct.Struct(layout.HEADER)
_FACT_SIZE_MAX = SEGMENT_SIZE // 2


class Writer:
    """Appends records for one thread. Its calls never raise, block, or grow memory."""

    __slots__ = (
        "_block",
        "_control",
        "_crcs",
        "_orders",
        "_ordinal",
        "_reported",
        "_roller",
        "_segment",
        "_words",
        "place",
    )

    def __init__(
        self, control: Control, block: int, roller: Roller, orders: Iterator[int], place: Any
    ) -> None:
        """`place` is a `Place`, or its compiled twin."""
        self._control, self._block = control, block
        self._roller, self._orders = roller, orders
        self.place = place
        self._segment: Segment | None = None
        self._words: Any = None
        self._crcs: Any = None
        self._ordinal = -1
        self._reported = [0] * (layout.BLOCK_REASONS * layout.OP_CODES)

    @property
    def next_seq(self) -> int:
        """What the next event will be numbered."""
        seq: int = self.place.seq
        return seq

    def append(self, op: Op, given: dict[str, Any]) -> int:
        """Store a call of `probe.emit`; its order. What can't be stored is counted."""
        place, order = self.place, next(self._orders)
        if place.busy:
            # A signal handler or a finaliser spoke from inside this very function.
            self._lose(op, 1, order, Reason.REFUSED)
            return order
        place.busy = True
        try:
            # Most calls have one value for each argument: this is `_publish`, written out.
            arguments = tuple(given)
            way = PLANS.get(arguments) or plan(arguments)
            at = place.end
            end = at + way.size
            if way.single and end <= SEGMENT_SIZE and not place.gap:
                seq = place.seq
                head = (way.tags[op], seq, order, monotonic_ns(), way.shape)
                record = way.pack(*head + way.pick(given))
                place.map[at:end] = record
                self._crcs[at >> 2] = crc32(record)
                place.end = end
                place.seq = seq = seq + 1
                self._words[WORD_COMMIT] = (seq - place.first << COMMIT_SHIFT) + end
            else:
                self._append(way, op, given, order)
        except Exception:
            self._retry(op, given, order)
        finally:
            place.busy = False
        return order

    def state(self, fact: Fact, content: dict[str, Any]) -> None:
        """Store a fact: a request, a hook, a note."""
        order = next(self._orders)
        if self.place.busy:
            self._lose(fact, 1, order, Reason.REFUSED)
            return
        self.place.busy = True
        try:
            self._close_gap()
            if not self._fact(fact, content, order):
                self._lose(fact, 1, order, Reason.FULL)
        except Exception as error:
            self._refuse(fact, {}, order, error)
        finally:
            self.place.busy = False

    def close(self) -> None:
        """Seal the segment. Only when the thread says nothing more."""
        self.place.busy = True
        with contextlib.suppress(Exception):
            self._close_gap()
        if self._segment is not None:
            self._words = self._crcs = self.place.map = None
            self._control.progress(self._block, self._ordinal + 1, self.place.seq)
            seal(self._segment)

    def _append(self, way: Plan, op: Op, given: dict[str, Any], order: int) -> None:
        """Store any call whose values have the types of the latest call of its site."""
        if self.place.gap:
            self._close_gap()
        values = way.pick(given)
        if not way.whole:
            way.learn(values)
        record, n = way.form.record(values, op, self.place.seq, order, monotonic_ns())
        # A call on no slots says nothing.
        if n and not self._publish(record, n):
            self._lose(op, n, order, Reason.FULL)

    def _retry(self, op: Op, given: dict[str, Any], order: int) -> None:
        """Store a call after the quick way has failed: its values may have other types than those
        of the latest call."""
        try:
            way = plan(tuple(given))
            way.learn(way.pick(given))
            self._append(way, op, given, order)
        except Exception as error:
            self._refuse(op, given, order, error)

    def _fact(self, fact: Fact, content: dict[str, Any], order: int) -> bool:
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        text = body.encode("utf-8", "backslashreplace")
        text += b" " * (-len(text) % layout.ALIGN)
        size = layout.HEADER_SIZE + len(text)
        if size > _FACT_SIZE_MAX:
            raise RecordError(f"a fact of {size} bytes; {_FACT_SIZE_MAX} is the most")
        tag, shape = tag_word(size, fact), shape_word(0, 0, 0)
        head = _FACT_HEADER.pack(tag, self.place.seq, order, monotonic_ns(), shape)
        return self._publish(head + text, 0)

    def _publish(self, record: bytes, n: int) -> bool:
        """Copy a record in and commit it; False if there is no room."""
        place = self.place
        at = place.end
        end = at + len(record)
        if end > SEGMENT_SIZE:
            if not self._roll():
                return False
            at = place.end
            end = at + len(record)
            if end > SEGMENT_SIZE:
                raise RecordError(f"a record of {len(record)} bytes is longer than a segment")
        place.map[at:end] = record
        self._crcs[at >> 2] = crc32(record)
        # An interrupt between these lines leaves a record that the next commit publishes too.
        place.end = end
        place.seq += n
        self._words[WORD_COMMIT] = (place.seq - place.first << COMMIT_SHIFT) + end
        return True

    def _roll(self) -> bool:
        """Go on in the next segment, if one is ready."""
        fresh = self._roller.take() if self._segment else self._roller.first()
        if fresh is None:
            return False
        full, place = self._segment, self.place
        if full is not None:
            self._words[layout.WORD_SEALED] = 1
        self._ordinal += 1
        self._segment = fresh
        self._words, self._crcs, place.map = fresh.words, fresh.crcs, fresh.map
        place.end, place.first = layout.SEGMENT_HEADER_DATA, place.seq
        if full is not None:
            full.block, full.next_seq = self._block, place.seq
            self._roller.retire(full)  # Only now: a map that somebody still has can't be closed.
        self._words[layout.WORD_ORDINAL] = self._ordinal
        self._words[layout.WORD_OWNER] = self._control.writer(self._block) + 1
        self._control.progress(self._block, self._ordinal + 1, self.place.seq)
        return True

    def _lose(self, op: int, events: int, order: int, reason: Reason) -> None:
        self._control.lose(self._block, op, events, order, reason)
        self.place.gap = True

    def _refuse(self, op: int, given: dict[str, Any], order: int, error: Exception) -> None:
        # An op that is no number can't be counted under one; and nothing may be raised.
        with contextlib.suppress(Exception):
            self._lose(op, slot_count(given), order, Reason.REFUSED)
            self._control.report(f"{_named(op)}: {type(error).__name__}: {error}")

    def _close_gap(self) -> None:
        """Say in the sequence itself what was lost here, once there is room again."""
        if not self.place.gap:
            return
        lost = self._control.lost(self._block)
        counts = [
            [index // layout.OP_CODES, index % layout.OP_CODES, now - before]
            for index, (now, before) in enumerate(zip(lost, self._reported, strict=True))
            if now > before
        ]
        window = self._control.window(self._block)
        if self._fact(Fact.GAP, {"window": window, "lost": counts}, next(self._orders)):
            self._reported, self.place.gap = lost, False
            self._control.close_gap(self._block)


def slot_count(given: dict[str, Any]) -> int:
    """Events of a call that is lost, as far as its arguments tell."""
    slots: Any = given.get("slots")
    return len(slots) if hasattr(slots, "__len__") else 1


def _named(op: int) -> str:
    for codes in (Op, Fact):
        with contextlib.suppress(ValueError):
            return codes(op).name
    return f"op {op}"
