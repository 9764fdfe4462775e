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
from .line import Line
from .station import Station


class ProcessStages:
    """Does in each turn what `LocalStages` does, of one stage. Every process launches the same
    batches in the same turns, so each knows what is handed to it without being told."""

    def __init__(self, runner: Runner, grids: Grids, patches: Patches, line: Line) -> None:
        self._runner, self._line = runner, line
        everywhere = patches.on("pp-stage-commit")
        self._station = Station(
            runner.stages[0],
            line.rank,
            grids,
            patches,
            commits=runner.commits and (everywhere or line.rank == line.last),
        )
        # The latest launch is right: stage s computes what was launched s turns ago.
        self._launched: deque[Snapshot | None] = deque([None] * line.last, line.last)

    @torch.inference_mode()
    def turn(self) -> Flight | None:
        """Compute what the stage before has sent; what the last one finished."""
        line, landing = self._line, self._launched[0]
        if line.rank == line.last:
            return self._finish(landing) if landing else None
        flight = self._receive(landing) if landing else None
        if line.rank and (snapshot := self._launched[-line.rank]):
            line.send(self._station.compute(snapshot, self._hidden(snapshot)))
        return flight

    @torch.inference_mode()
    def launch(self, launch: Launch | None) -> None:
        """Let the first stage compute a new batch; None is a gap that travels like one."""
        snapshot = self._runner.snapshot(launch) if launch else None
        self._launched.append(snapshot)
        if snapshot and self._line.rank == 0:
            self._line.send(self._station.compute(snapshot, None))

    def _finish(self, snapshot: Snapshot) -> Flight:
        hidden = self._station.compute(snapshot, self._hidden(snapshot))
        result = self._runner.choose(snapshot, hidden)
        flight = Flight(snapshot.launch, result)
        if flight.verified:
            relay.sent(flight, self._line.rank)
        self._line.share(result, self._line.last)
        if flight.verified:
            self._station.commit(flight)
        self._runner.advance(snapshot, hidden, result)
        return flight

    def _receive(self, snapshot: Snapshot) -> Flight:
        result: Result = self._line.share(None, self._line.last)
        flight = Flight(snapshot.launch, result)
        self._runner.record(snapshot, result)
        if flight.verified:
            self._station.receive(flight)
        return flight

    def _hidden(self, snapshot: Snapshot) -> Tensor:
        stage = self._runner.stages[0]
        shape = (len(snapshot.forward.tokens), stage.model.hidden_size)
        return self._line.receive(stage.memory.ssm.new_empty(shape))


class SharedDrafter(Drafter):
    """The last stage drafts, for it has the hidden states and the head; all others are told."""

    def __init__(self, own: Drafter, line: Line) -> None:
        super().__init__(own.rows, own.steps)
        self._line, self._own = line, own
        self.memories = own.memories

    def draft(self, rows: Tensor) -> Draft:
        """The last stage's. All processes ask for the same rows in the same turn."""
        line = self._line
        return line.share(self._own.draft(rows) if line.rank == line.last else None, line.last)

    def observe(
        self, batch: Forward, hidden: Tensor, following: Tensor, rows: Tensor, last: Tensor
    ) -> None:
        """The last stage's drafter looks on."""
        self._own.observe(batch, hidden, following, rows, last)
