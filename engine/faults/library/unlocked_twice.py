"""A request gives its lock back twice."""

from __future__ import annotations

from slotscope.engine.cache import Cache
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedCache
from slotscope.engine.running import Running


class _Cache(UncheckedCache):
    def release(self, running: Running) -> None:
        node = running.node
        super().release(running)
        if node is not None:
            self.tree.unlock(node, running.number)


FAULT = Fault(
    kind="K11",
    upstream="sglang #21379, #27147",
    breaks="a lock is taken without its state's part, and given back with it",
    detector="D11",
    replaces={Cache: _Cache},
    load="answers",
)
