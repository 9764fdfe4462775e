"""A commit reads the scratch rows in the order of another batch."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.batch import Flight, Result
from slotscope.engine.faults.fault import Fault
from slotscope.engine.grids import Grids
from slotscope.engine.retire import Retire
from slotscope.engine.snapshot import Snapshot
from slotscope.engine.stage import Stage
from slotscope.engine.telling import committed


class _Stage(Stage):
    __slots__ = ()

    def commit(self, snapshot: Snapshot, result: Result, grids: Grids) -> None:
        assert snapshot.plan is not None
        turned = replace(snapshot.plan, rows=snapshot.plan.rows.roll(-1))
        super().commit(replace(snapshot, plan=turned), result, grids)


class _Retire(Retire):
    def flight(self, flight: Flight) -> None:
        if flight.verified:
            rows = [item.running.row for item in flight.launch.batch.items]
            paths, before = flight.result.paths(), flight.result.before.tolist()
            turned = [*rows[1:], *rows[:1]]
            committed(flight.launch, before, paths, self._grids, scratch=turned)
        self._tells = False
        super().flight(flight)


FAULT = Fault(
    kind="K5",
    upstream="TensorRT-LLM #13151",
    breaks="the scatter takes its rows from a stale tail, not from its batch",
    detector="D5",
    replaces={Stage: _Stage, Retire: _Retire},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
