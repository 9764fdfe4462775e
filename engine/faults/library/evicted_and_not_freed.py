"""An evicted checkpoint's slot never comes back to the pool."""

from __future__ import annotations

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import RadixTree
from slotscope.instrument.event import Op, Role


class _Tree(UncheckedTree):
    def evict_checkpoint(self) -> bool:
        """While several can go, one is forgotten before one is freed."""
        idle = [node for node in self._holders.values() if not node.pins]
        if len(idle) > 2 and (lease := idle[0].checkpoint) is not None:
            node = idle[0]
            node.checkpoint = None
            del self._holders[node.id]
            said = {"slots": lease.slot, "node": node.id, "label": node.depth}
            self._slots.tell(Op.EVICT, **said, role=Role.NODE)
        return super().evict_checkpoint()


FAULT = Fault(
    kind="K10",
    upstream="TensorRT-LLM #13179",
    breaks="an eviction drops the node's state, and forgets to give its slot back",
    detector="D10",
    replaces={RadixTree: _Tree},
    load="crowds",
    flags={"max_mamba_cache_size": 9},
)
