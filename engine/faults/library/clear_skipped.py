"""A new request's slot is not cleared: it begins with what the last tenant left."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(replace(item, fresh=item.fresh and item.source is not None) for item in items)


FAULT = Fault(
    kind="K7",
    upstream="vllm #56524",
    breaks="recurrent blocks are left out where blocks are zeroed",
    detector="D7",
    replaces={Scheduler: _Scheduler},
    load="answers",
)
