"""The stages of other processes, as the process of one stage sees them."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

from slotscope.engine.batch import Flight, Launch, Result
from slotscope.engine.forward import Forward
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.runner import Runner
from slotscope.engine.snapshot import Snapshot
from slotscope.engine.speculation.draft import Draft
from slotscope.engine.speculation.drafter import Drafter

from . import relay
from .group import StageGroup
from .station import Station


class ProcessStages:
    """Does in each turn what `LocalStages` does, of one stage. Every process launches the same
    batches in the same turns, so each knows what is handed to it without being told."""

    def __init__(self, runner: Runner, grids: Grids, patches: Patches, group: StageGroup) -> None:
        self._runner, self._group = runner, group
        self._station = Station(
            runner.stages[0],
            group.rank,
            grids,
            patches,
            last=group.rank == group.last,
            commits=runner.commits,
        )
        # The latest launch is right: stage s computes what was launched s turns ago.
        self._launched: deque[Snapshot | None] = deque([None] * group.last, group.last)

    @property
    def stations(self) -> tuple[Station, ...]:
        """The one that is this process's."""
        return (self._station,)

    @torch.inference_mode()
    def turn(self) -> Flight | None:
        """Compute what the stage before has sent; what the last one finished."""
        group, landing = self._group, self._launched[0]
        if group.rank == group.last:
            return self._finish(landing) if landing else None
        flight = self._receive(landing) if landing else None
        if group.rank and (snapshot := self._launched[-group.rank]):
            group.send(self._station.compute(snapshot, self._hidden(snapshot)))
        return flight

    @torch.inference_mode()
    def launch(self, launch: Launch | None) -> None:
        """Let the first stage compute a new batch; None is a gap that travels like one."""
        snapshot = self._runner.snapshot(launch) if launch else None
        self._launched.append(snapshot)
        if snapshot and self._group.rank == 0:
            self._group.send(self._station.compute(snapshot, None))

    def _finish(self, snapshot: Snapshot) -> Flight:
        hidden = self._station.compute(snapshot, self._hidden(snapshot))
        result = self._runner.choose(snapshot, hidden)
        flight = Flight(snapshot.launch, result)
        if flight.verified:
            relay.sent(flight, self._group.rank)
        self._group.share(result, self._group.last)
        if flight.verified:
            self._station.commit(flight)
        self._runner.advance(snapshot, hidden, result)
        return flight

    def _receive(self, snapshot: Snapshot) -> Flight:
        result: Result = self._group.share(None, self._group.last)
        flight = Flight(snapshot.launch, result)
        self._runner.record(snapshot, result)
        if flight.verified:
            self._station.receive(flight)
        return flight

    def _hidden(self, snapshot: Snapshot) -> Tensor:
        stage = self._runner.stages[0]
        shape = (len(snapshot.forward.tokens), stage.model.hidden_size)
        return self._group.receive(stage.memory.ssm.new_empty(shape))


class SharedDrafter(Drafter):
    """The last stage drafts, for it has the hidden states and the head; all others are told."""

    def __init__(self, own: Drafter, group: StageGroup) -> None:
        super().__init__(own.rows, own.steps)
        self._group, self._own = group, own
        self.memories = own.memories

    def draft(self, rows: Tensor) -> Draft:
        """The last stage's. All processes ask for the same rows in the same turn."""
        group = self._group
        own = self._own.draft(rows) if group.rank == group.last else None
        return group.share(own, group.last)

    def observe(
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """The last stage's drafter looks on."""
        self._own.observe(batch, hidden, following, rows, last)
