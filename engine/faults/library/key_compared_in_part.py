"""A match looks an edge up by its first page, and does not compare the rest."""

from __future__ import annotations

from collections.abc import Sequence

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import Node, RadixTree


class _Tree(UncheckedTree):
    def match(self, tokens: Sequence[int], extra_key: str = "") -> Node | None:
        best, node = None, self._roots.get(extra_key)
        while node is not None:
            at = node.depth
            node = node.children.get(tuple(tokens[at : at + self._page]))
            if node is None or node.depth > len(tokens):
                break
            if node.resumable:
                best = node
        return best


FAULT = Fault(
    kind="K11",
    upstream="openvino.genai #3722",
    breaks="two prefixes that agree in what is looked up are taken for one",
    detector="D11",
    replaces={RadixTree: _Tree},
    load="branches",
)
