"""Where an edge is split, the state goes to the upper node, whose depth it does not have."""

from __future__ import annotations

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import Node, RadixTree


class _Tree(UncheckedTree):
    def _split(self, child: Node, shared: int) -> Node:
        upper = super()._split(child, shared)
        upper.checkpoint, child.checkpoint = child.checkpoint, None
        if self._holders.pop(child.id, None) is not None:
            self._holders[upper.id] = upper
        return upper


FAULT = Fault(
    kind="K11",
    upstream="sglang #36696, #28692",
    breaks="a split registers what the lower node has under the upper one's key",
    detector="D11",
    replaces={RadixTree: _Tree},
    load="branches",
)
