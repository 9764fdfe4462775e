"""The least recently used state is evicted, whoever has locked it."""

from __future__ import annotations

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import RadixTree


class _Tree(UncheckedTree):
    def evict_checkpoint(self) -> bool:
        """Locks are not asked for."""
        victim = next(iter(self._holders.values()), None)
        if victim is None:
            return False
        if victim.children or victim.locks:
            self._drop_checkpoint(victim)
        else:
            self._remove(victim)
        return True


FAULT = Fault(
    kind="K11",
    upstream="sglang #22592, #23696",
    breaks="a cascade of deletions takes a node that is protected",
    detector="D11",
    replaces={RadixTree: _Tree},
    load="crowds",
    flags={"max_mamba_cache_size": 9},
)
