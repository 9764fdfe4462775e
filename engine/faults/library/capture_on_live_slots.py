"""Before a batch is first run at its size, capturing it advances the states it names."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Batch, Flight
from slotscope.engine.faults.fault import Fault
from slotscope.engine.scheduler import Scheduler
from slotscope.engine.telling import launched, retired, staged
from slotscope.instrument.event import Kind


class _Scheduler(Scheduler):
    _captured: frozenset[int] = frozenset()

    def _launch(self, batch: Batch) -> Flight:
        size = len(batch.items)
        if batch.kind is Kind.DECODE and size not in self._captured:
            self._captured |= {size}
            untracked = tuple(replace(item, target=None) for item in batch.items)
            capture = launched(next(self._numbers), Batch(Kind.CAPTURE, untracked))
            staged(capture, self._grids)
            decode = replace(capture, batch=Batch(Kind.DECODE, untracked))
            self._runner.stages[0].forward(self._runner.snapshot(decode), None)
            retired(capture)
        return super()._launch(batch)


FAULT = Fault(
    kind="K6",
    upstream="AReno #509, onnxruntime #32243",
    breaks="warm-up and capture run on live slots, so the same token is taken twice",
    detector="D6",
    replaces={Scheduler: _Scheduler},
    load="answers",
)
