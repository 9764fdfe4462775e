"""The padded rows of a decode name a live slot."""

from __future__ import annotations

from slotscope.engine.batch import Batch, Flight
from slotscope.engine.faults.fault import Fault
from slotscope.engine.runner import BUCKETS
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role


class _Scheduler(Scheduler):
    def _launch(self, batch: Batch) -> Flight:
        flight = super()._launch(batch)
        launch, count = flight.launch, len(batch.items)
        padded = next(bucket for bucket in BUCKETS if bucket >= count) - count
        if batch.kind is Kind.DECODE and padded:
            # The pad row advances an empty state by a token, and leaves it in the slot it names.
            self._runner.stages[0].states.copy([0], [launch.slots[0]])
            probe.emit(
                Op.ADVANCE,
                slots=[launch.slots[0]] * padded,
                role=Role.PAD,
                depth_before=0,
                depth=1,
                forward=launch.number,
                kind=batch.kind,
                launch=launch.order,
            )
        return flight


FAULT = Fault(
    kind="K6",
    upstream="tokenspeed #700",
    breaks="padding is clamped to a slot that the pool hands out",
    detector="D6",
    replaces={Scheduler: _Scheduler},
    load="answers",
)
