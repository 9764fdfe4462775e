"""Two requests of a batch get each other's track slots."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        targets = [item.target for item in items]
        if kind is not Kind.DECODE or None in targets:
            return items
        turned = (*targets[1:], *targets[:1])
        return tuple(replace(i, target=t) for i, t in zip(items, turned, strict=True))


FAULT = Fault(
    kind="K3",
    upstream="vllm-ascend #13726",
    breaks="the list of destinations is refilled for another batch before the copy has read it",
    detector="D3",
    replaces={Scheduler: _Scheduler},
    load="abreast",
)
