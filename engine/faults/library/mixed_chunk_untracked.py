"""A chunk that is computed beside decodes loses its track slot, and donates it all the same."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Item
from slotscope.engine.faults.fault import Fault
from slotscope.engine.faults.rewriting import Rewriting
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class _Scheduler(Rewriting):
    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        if kind is not Kind.PREFILL or not self.decode.running:
            return items
        return tuple(replace(item, target=None) for item in items)


FAULT = Fault(
    kind="K2",
    upstream="sglang #39342, #24613",
    breaks="merging a prefill with the running batch drops its track tensors",
    detector="D2",
    replaces={Scheduler: _Scheduler},
    load="chunks",
    flags={"chunked_prefill_size": 128},
)
