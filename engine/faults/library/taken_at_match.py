"""A live slot is taken as soon as a prompt is matched, and forgotten where nobody is seated."""

from __future__ import annotations

from slotscope.engine.cache import Cache
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedCache
from slotscope.engine.request import Request
from slotscope.engine.running import Running
from slotscope.instrument.event import Role


class _Cache(UncheckedCache):
    def admit(self, request: Request, *, slots: int, ahead: int) -> Running | None:
        running = super().admit(request, slots=slots, ahead=ahead)
        has_one = any(owner.request == request.number for owner in self.slots._owner.values())
        if running is None and not has_one:
            self.slots.allocate(Role.LIVE, request.number)
        return running


FAULT = Fault(
    kind="K10",
    upstream="sglang #12693, #20182, #21404",
    breaks="the slot that a match took is not given back where the request is not admitted",
    detector="D10",
    replaces={Cache: _Cache},
    load="queue",
    flags={"max_mamba_cache_size": 5},
)
