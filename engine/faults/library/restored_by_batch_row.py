"""Requests that resume in one batch get each other's checkpoints."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        sources = [(item.source, item.node) for item in items]
        if kind is not Kind.PREFILL or (None, None) in sources:
            return items
        turned = (*sources[1:], *sources[:1])
        return tuple(
            replace(item, source=source, node=node)
            for item, (source, node) in zip(items, turned, strict=True)
        )


FAULT = Fault(
    kind="K5",
    upstream="tpu-inference #2779",
    breaks="the slot to copy from follows the row of the batch, not the request",
    detector="D5",
    replaces={Scheduler: _Scheduler},
    load="abreast",
)
