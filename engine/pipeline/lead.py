"""The loop of the first stage's process, where requests come in."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.request import Delta, Request
from slotscope.engine.scheduler import SchedulerParts

from .crew import Crew, Order
from .group import StageGroup
from .processes import ProcessStages
from .scheduler import PipelineScheduler


class LeadScheduler(PipelineScheduler):
    """What is asked from outside takes effect when the next turn begins, in all processes alike:
    equal schedulers that are told the same decide the same."""

    def __init__(
        self, parts: SchedulerParts, stages: ProcessStages, crew: Crew, group: StageGroup
    ) -> None:
        super().__init__(parts, stages)
        self.crew, self._group = crew, group
        self._asked: list[Order] = []

    @property
    def idle(self) -> bool:
        """Nothing was asked that has not taken effect, either."""
        return super().idle and not self._asked

    def add(self, request: Request) -> None:
        """Put a request into the queue of every process."""
        self._asked.append(("add", (request,)))

    def end(self, request_id: str, reason: str) -> None:
        """End a request in every process."""
        self._asked.append(("end", (request_id, reason)))

    def retract(self, request_id: str) -> None:
        """Have a request give way in every process."""
        self._asked.append(("retract", (request_id,)))

    def flush(self) -> None:
        """Drop what is cached, in every process."""
        self._asked.append(("flush", ()))

    def step(self) -> None:
        """One turn of all processes."""
        asked, self._asked = self._asked, []
        self.crew.tell([_sendable(order) for order in asked])
        for name, given in asked:
            getattr(super(), name)(*given)
        super().step()

    def close(self) -> None:
        """End the other processes."""
        self.crew.end()
        self._group.leave()


def unheard(delta: Delta) -> None:
    """The sink of requests in processes that nobody asks for answers."""


def _sendable(order: Order) -> Order:
    name, given = order
    return name, tuple(
        replace(each, sink=unheard) if isinstance(each, Request) else each for each in given
    )
