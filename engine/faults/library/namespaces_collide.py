"""All namespaces share one tree: what one tenant left, another one is offered."""

from __future__ import annotations

from collections.abc import Sequence

from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.unchecked import UncheckedTree
from slotscope.engine.tree import Node, RadixTree


class _Tree(UncheckedTree):
    def match(self, tokens: Sequence[int], extra_key: str = "") -> Node | None:
        return super().match(tokens)

    def insert(
        self, tokens: Sequence[int], locations: Sequence[int], extra_key: str = ""
    ) -> tuple[Node, int]:
        return super().insert(tokens, locations)


FAULT = Fault(
    kind="K11",
    upstream="sglang #24638, vllm #44701",
    breaks="two namespaces are composed into one key, so that a state of one serves the other",
    detector="D11",
    replaces={RadixTree: _Tree},
    load="tenants",
)
