"""Speech: `probe.emit` for slots whose numbers may still be on the device.

An event is said when it happens, with the numbers that are known. The others follow in an `amend`
that names the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slotscope.instrument import probe
from slotscope.instrument.event import Op

from .ids import Id, Ids, Pending, plain

Column = Sequence[Id] | np.ndarray[Any, Any]


class Speech:
    """Says events, and completes them."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._open: list[tuple[int, Id, Id]] = []  # seq of the event, its slot, its src_slot

    def say(
        self, op: Op, slots: Column, sources: Sequence[Id] | None = None, **columns: Any
    ) -> int:
        """Say one operation on some slots; the record's order, as `probe.emit` returns it.

        Args:
            slots: one or more; an array where all are known.
            sources: for each slot, the one that was read.
            columns: the other arguments of `probe.emit`.
        """
        if sources is None and isinstance(slots, np.ndarray):
            return probe.emit(op, slots=slots, **columns)
        late = [i for i, slot in enumerate(slots) if _open(slot)]
        if sources is not None:
            late = sorted({*late, *(i for i, source in enumerate(sources) if _open(source))})
            columns["src_slot"] = [*map(plain, sources)]
        first = probe.next_seq()
        order = probe.emit(op, slots=[*map(plain, slots)], **columns)
        if probe.next_seq() == first + len(slots):  # Stored: what is lost can't be completed.
            for i in late:
                source = sources[i] if sources is not None else None
                self._open.append((first + i, slots[i], source))
        return order

    def settle(self) -> None:
        """Complete what can be completed by now. Waits for nothing."""
        self._ids.flush()
        if not self._ids.settle():
            return
        waiting = []
        for seq, slot, source in self._open:
            if _open(slot) or _open(source):
                waiting.append((seq, slot, source))
            else:
                probe.emit(Op.AMEND, slots=plain(slot), src_slot=plain(source), amends=seq)
        self._open = waiting


def _open(slot: Id) -> bool:
    return type(slot) is Pending and slot.value is None
