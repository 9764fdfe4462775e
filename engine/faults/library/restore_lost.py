"""A request that resumes never gets the state that it resumes from."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(replace(item, fresh=item.fresh and item.source is None) for item in items)


FAULT = Fault(
    kind="K7",
    upstream="sglang #24954, in review",
    breaks="a live slot that is replaced loses the copy that was pending for it",
    detector="D7",
    replaces={Scheduler: _Scheduler},
    load="answers",
)
