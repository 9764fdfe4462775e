"""The list of restores is executed again in the next forward of the request."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.running import Running
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    _restored: dict[Running, Item] = {}

    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(self._again(item) for item in items) if kind is Kind.PREFILL else items

    def _again(self, item: Item) -> Item:
        first = self._restored.pop(item.running, None)
        if first is not None:
            return replace(item, source=first.source, node=first.node, fresh=True)
        if item.fresh and item.source is not None:
            self._restored[item.running] = item
        return item


FAULT = Fault(
    kind="K7",
    upstream="sglang #27095",
    breaks="the batch keeps the copies of its first forward, and makes them once more",
    detector="D7",
    replaces={Scheduler: _Scheduler},
    load="chunks",
    flags={"chunked_prefill_size": 64},
)
