"""Stages of one process, turned by one thread in a fixed order: deterministic, as tests want it."""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.batch import Flight, Launch
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.runner import Runner
from slotscope.engine.snapshot import Snapshot

from . import relay
from .station import Station


class LocalStages:
    """In each turn every stage computes one micro-batch, each another one, and hands it on.

    The last stage is turned first: what it accepts reaches every other stage before that one
    computes anything more, and the micro-batch that is launched next knows how far it has come.
    """

    def __init__(self, runner: Runner, grids: Grids, patches: Patches) -> None:
        self._runner = runner
        last = len(runner.stages) - 1
        self._stations = [
            Station(
                stage,
                number,
                grids,
                patches,
                last=number == last,
                commits=runner.commits,
            )
            for number, stage in enumerate(runner.stages)
        ]
        self._handed: list[tuple[Snapshot, Tensor] | None] = [None] * len(self._stations)

    @property
    def stations(self) -> tuple[Station, ...]:
        """All of them."""
        return tuple(self._stations)

    @torch.inference_mode()
    def turn(self) -> Flight | None:
        """Let every stage but the first compute what it was handed; what the last one finished."""
        flight = self._finish()
        for station in reversed(self._stations[:-1]):
            if flight and flight.verified:
                station.receive(flight)
            if handed := self._handed[station.number]:
                self._hand_on(station, *handed)
        return flight

    @torch.inference_mode()
    def launch(self, launch: Launch | None) -> None:
        """Let the first stage compute a new batch; None is a gap that travels like one."""
        self._handed[0] = None
        if launch:
            self._hand_on(self._stations[0], self._runner.snapshot(launch), None)

    def _hand_on(self, station: Station, snapshot: Snapshot, hidden: Tensor | None) -> None:
        self._handed[station.number] = None
        self._handed[station.number + 1] = (snapshot, station.compute(snapshot, hidden))

    def _finish(self) -> Flight | None:
        last, handed = self._stations[-1], self._handed[-1]
        if handed is None:
            return None
        self._handed[-1] = None
        snapshot, hidden = handed
        hidden = last.compute(snapshot, hidden)
        flight = Flight(snapshot.launch, self._runner.choose(snapshot, hidden))
        if flight.verified:
            relay.sent(flight, last.number)
            last.commit(flight)
        self._runner.advance(snapshot, hidden, flight.result)
        return flight
