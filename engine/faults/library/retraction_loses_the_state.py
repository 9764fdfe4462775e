"""A retracted request gets its KV back, and not its state."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            replace(item, fresh=item.fresh and not item.running.request.usage.retractions)
            for item in items
        )


FAULT = Fault(
    kind="K8",
    upstream="sglang #22493",
    breaks="a retraction saves keys and values, and forgets the recurrent state",
    detector="D7",
    replaces={Scheduler: _Scheduler},
    load="ends",
)
