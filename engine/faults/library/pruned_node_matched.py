"""A node whose state was evicted is still offered."""

from __future__ import annotations

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import RadixTree


class _Tree(UncheckedTree):
    def evict_checkpoint(self) -> bool:
        """Free a state, and leave the node among those that can be resumed from."""
        victim = next((node for node in self._holders.values() if not node.pins), None)
        if victim is None:
            return False
        lease = victim.checkpoint
        self._drop_checkpoint(victim)
        victim.checkpoint = lease
        return True


FAULT = Fault(
    kind="K11",
    upstream="tokenspeed #357",
    breaks="a pruned node stays in the set of nodes with a state",
    detector="D11",
    replaces={RadixTree: _Tree},
    load="crowds",
    flags={"max_mamba_cache_size": 9},
)
