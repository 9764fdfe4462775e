"""The loop of pipeline stages: as many micro-batches in flight as there are stages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from slotscope.engine.batch import Flight, Launch
from slotscope.engine.scheduler import Scheduler, SchedulerParts
from slotscope.engine.telling import launched

from .processes import ProcessStages
from .stages import LocalStages


class PipelineScheduler(Scheduler):
    """One host decides for all stages: who is admitted, which slots are whose. In turn t it retires
    the flight that the last stage finishes and launches micro-batch t modulo the stages, whose own
    flight landed one turn ago. So a request is in at most one flight.

    A request stays in the micro-batch that admitted it; arrivals and ends recompose each.
    """

    def __init__(self, parts: SchedulerParts, stages: LocalStages | ProcessStages) -> None:
        super().__init__(parts)
        self._stages = stages
        self._turns = count()
        self._flying: dict[int, Launch] = {}  # forward -> its launch
        self._later: dict[str, list[Callable[[], None]]] = {}  # request -> once its flight landed

    @property
    def idle(self) -> bool:
        """Nobody waits, nobody runs, nothing is in flight."""
        return super().idle and not self._flying

    @property
    def stations(self) -> tuple[object, ...]:
        """The stages that this process turns."""
        return self._stages.stations

    def end(self, request_id: str, reason: str) -> None:
        """As `Scheduler.end`, but a request in flight is ended when its flight lands: later stages
        have yet to read its row and write its slots, which nobody else may have by then."""
        self._once_landed(request_id, partial(super().end, request_id, reason))

    def retract(self, request_id: str) -> None:
        """As `Scheduler.retract`, but when its flight has landed."""
        self._once_landed(request_id, partial(super().retract, request_id))

    def step(self) -> None:
        """One turn of all stages."""
        if flight := self._stages.turn():
            self._land(flight)
        self._stages.launch(self._next_launch(next(self._turns) % self.config.pp_size))
        if self.idle:
            self.cache.check(idle=True)

    def _land(self, flight: Flight) -> None:
        del self._flying[flight.launch.number]
        self.retire.flight(flight)
        for item in flight.launch.batch.items:
            for act in self._later.pop(item.running.request.request_id, ()):
                act()

    def _next_launch(self, micro_batch: int) -> Launch | None:
        batch = self._next_batch(micro_batch)
        if batch is None:
            return None
        launch = launched(next(self._numbers), batch, micro_batch)
        self._flying[launch.number] = launch
        self._seat(batch)
        return launch

    def _room_in(self, micro_batch: int) -> int:
        """Micro-batches share the seats evenly: the slowest one sets the pace of all."""
        share = -(-self.config.max_running_requests // self.config.pp_size)
        seated = (*self.decode.running, *self.prefill.partial)
        taken = sum(each.micro_batch == micro_batch for each in seated)
        return min(super()._room_in(micro_batch), share - taken)

    def _once_landed(self, request_id: str, act: Callable[[], None]) -> None:
        batches = (launch.batch for launch in self._flying.values())
        if any(item.running.request.request_id == request_id for b in batches for item in b.items):
            self._later.setdefault(request_id, []).append(act)
        else:
            act()
