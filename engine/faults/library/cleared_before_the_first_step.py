"""The live state is cleared before the first decode, though its prompt is in it."""

from __future__ import annotations

from slotscope.engine.batch import Batch, Flight
from slotscope.engine.faults.fault import Fault
from slotscope.engine.scheduler import Scheduler
from slotscope.engine.telling import launched, staged
from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role


class _Scheduler(Scheduler):
    def _launch(self, batch: Batch) -> Flight:
        new = [i for i in batch.items if i.start == i.running.fill]
        if batch.kind is not Kind.DECODE or not new:
            return super()._launch(batch)
        launch = launched(next(self._numbers), batch)
        slots = [item.live_slot for item in new]
        self._runner.stages[0].states.clear(slots)
        probe.emit(
            Op.CLEAR,
            slots=slots,
            request=[item.running.number for item in new],
            role=Role.LIVE,
            depth=0,
            forward=launch.number,
            kind=batch.kind,
            launch=launch.order,
        )
        staged(launch, self._grids)
        return Flight(launch, self._runner.run(launch))


FAULT = Fault(
    kind="K7",
    upstream="sglang #32995",
    breaks="the mark that a slot needs a clear survives the state that came for it",
    detector="D7",
    replaces={Scheduler: _Scheduler},
    load="answers",
)
