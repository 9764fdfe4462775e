"""Relay: what a verify accepted, on its way from the last stage to all others."""

from __future__ import annotations

from typing import Any

from slotscope.engine.batch import Flight, Launch
from slotscope.instrument import probe
from slotscope.instrument.event import Op


def sent(flight: Flight, pool: int) -> None:
    """Tell that the last stage, whose slots are `pool`'s, passes on what a verify accepted."""
    if probe.level:
        _tell(Op.RELAY_SEND, flight.launch, flight.result.accept.tolist(), pool)


def received(flight: Flight, pool: int) -> None:
    """Tell that a stage has it."""
    if probe.level:
        _tell(Op.RELAY_RECEIVE, flight.launch, flight.result.accept.tolist(), pool)


def _tell(op: Op, launch: Launch, accept: list[int], pool: int) -> None:
    items = launch.batch.items
    each: dict[str, Any] = {
        "slots": [None] * len(items),
        "request": [item.running.number for item in items],
        "row": [item.running.row for item in items],
        "accept_len": accept,
    }
    probe.emit(
        op,
        **each,
        forward=launch.number,
        kind=launch.batch.kind,
        micro_batch=launch.micro_batch,
        pool=pool,
    )
