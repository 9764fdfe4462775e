"""A backend without the commit is skipped in silence: only single requests are committed."""

from __future__ import annotations

from slotscope.engine.batch import Flight, Launch, Result
from slotscope.engine.faults.fault import Fault
from slotscope.engine.retire import Retire
from slotscope.engine.runner import Runner


def _commits(launch: Launch) -> bool:
    return len(launch.batch.items) == 1


class _Runner(Runner):
    def run(self, launch: Launch) -> Result:
        self.commits = _commits(launch)
        return super().run(launch)


class _Retire(Retire):
    def flight(self, flight: Flight) -> None:
        self._tells = _commits(flight.launch)
        super().flight(flight)


FAULT = Fault(
    kind="K4",
    upstream="sglang #25883",
    breaks="the composite backend lacks the commit, and `hasattr` skips it",
    detector="D4",
    replaces={Runner: _Runner, Retire: _Retire},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
