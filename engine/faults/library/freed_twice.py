"""A request's live slot is freed at its end, and once more."""

from __future__ import annotations

from slotscope.engine.cache import Cache
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedCache
from slotscope.engine.running import Running
from slotscope.instrument.event import Role


class _Cache(UncheckedCache):
    def release(self, running: Running) -> None:
        live = running.live
        super().release(running)
        if live is not None:
            self.free_slot(running, live, Role.LIVE)


FAULT = Fault(
    kind="K10",
    upstream="sglang #38062",
    breaks="the fields that name freed slots are cleared on the wrong object, and free them again",
    detector="D10",
    replaces={Cache: _Cache},
    load="answers",
)
