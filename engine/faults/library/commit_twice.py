"""What a verify accepted is committed when it is launched, and again when it is retired."""

from __future__ import annotations

from slotscope.engine.batch import Flight
from slotscope.engine.faults.fault import Fault
from slotscope.engine.retire import Retire
from slotscope.engine.telling import committed


class _Retire(Retire):
    def flight(self, flight: Flight) -> None:
        if flight.verified:
            before = flight.result.before.tolist()
            committed(flight.launch, before, flight.result.paths(), self._grids)
        super().flight(flight)


FAULT = Fault(
    kind="K4",
    upstream="llama-cpp-turboquant #345, #352",
    breaks="a rollback that was applied stays latched, and is applied once more",
    detector="D4",
    replaces={Retire: _Retire},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
