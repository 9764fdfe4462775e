"""A request that ends keeps the lock of what it resumed from."""

from __future__ import annotations

from slotscope.engine.cache import Cache
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedCache
from slotscope.engine.running import Running


class _Cache(UncheckedCache):
    def release(self, running: Running) -> None:
        running.node = None
        super().release(running)


FAULT = Fault(
    kind="K11",
    upstream="sglang #37943, #40128",
    breaks="locks outlive the requests that took them, until nothing can be evicted",
    detector="D11",
    replaces={Cache: _Cache},
    load="answers",
)
