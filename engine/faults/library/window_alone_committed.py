"""A verify's commit moves the convolution's window, and leaves the SSM state where it was."""

from __future__ import annotations

from slotscope.engine.batch import Flight, Result
from slotscope.engine.faults.fault import Fault
from slotscope.engine.grids import Grids
from slotscope.engine.retire import Retire
from slotscope.engine.snapshot import Snapshot
from slotscope.engine.stage import Stage
from slotscope.engine.telling import committed
from slotscope.instrument.event import Component


class _Stage(Stage):
    __slots__ = ()

    def commit(self, snapshot: Snapshot, result: Result, grids: Grids) -> None:
        assert snapshot.plan is not None
        live = snapshot.plan.live[: snapshot.count]
        before = self.memory.ssm[:, live].clone()
        super().commit(snapshot, result, grids)
        self.memory.ssm[:, live] = before


class _Retire(Retire):
    def flight(self, flight: Flight) -> None:
        if flight.verified:
            paths, before = flight.result.paths(), flight.result.before.tolist()
            committed(flight.launch, before, paths, self._grids, component=Component.CONV)
        self._tells = False
        super().flight(flight)


FAULT = Fault(
    kind="K4",
    upstream="transformers #49036",
    breaks="what is rolled to the accepted token is the window of the convolution alone",
    detector="D4",
    replaces={Stage: _Stage, Retire: _Retire},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
