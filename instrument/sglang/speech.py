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
        self._open: list[tuple[int, Id, Id, Id]] = []  # seq of the event; slot, src_slot, digest

    def say(
        self,
        op: Op,
        slots: Column,
        sources: Sequence[Id] | None = None,
        digests: Sequence[Id] | None = None,
        **columns: Any,
    ) -> int:
        """Say one operation on some slots; the record's order, as `probe.emit` returns it.

        Args:
            slots: one or more; an array where all are known.
            sources: for each slot, the one that was read.
            digests: for each slot, that of the state.
            columns: the other arguments of `probe.emit`.
        """
        if sources is digests is None and isinstance(slots, np.ndarray):
            return probe.emit(op, slots=slots, **columns)
        nothing = [None] * len(slots)
        if sources is not None:
            columns["src_slot"] = [*map(plain, sources)]
        if digests is not None:
            columns["digest"] = [*map(plain, digests)]
        rows = [*zip(slots, sources or nothing, digests or nothing, strict=True)]
        late = [i for i, row in enumerate(rows) if any(map(_open, row))]
        first = probe.next_seq()
        order = probe.emit(op, slots=[*map(plain, slots)], **columns)
        if probe.next_seq() == first + len(slots):  # Stored: what is lost can't be completed.
            self._open += [(first + i, *rows[i]) for i in late]
        return order

    def settle(self) -> None:
        """Complete what can be completed by now. Waits for nothing."""
        self._ids.flush()
        if not self._ids.settle():
            return
        waiting = []
        for seq, slot, source, digest in self._open:
            if _open(slot) or _open(source) or _open(digest):
                waiting.append((seq, slot, source, digest))
                continue
            said: dict[str, Any] = {} if digest is None else {"digest": plain(digest)}
            probe.emit(Op.AMEND, slots=plain(slot), src_slot=plain(source), amends=seq, **said)
        self._open = waiting


def _open(slot: Id) -> bool:
    return type(slot) is Pending and slot.value is None
