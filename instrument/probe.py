"""What an engine may say. NumPy alone is imported, and off costs one call of an empty function.

    from slotscope.instrument import probe

    launch = probe.emit(Op.FORWARD_LAUNCH, forward=7, kind=Kind.DECODE)
    probe.emit(Op.ADVANCE, slots=[3, 9], request=[0, 1], depth=[12, 80], forward=7, launch=launch)

Call through the module, as above: `start` and `stop` replace `emit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .event import Component, Kind, Op, Outcome, Role, Source, Unit

Column = int | Sequence[int] | Sequence[int | None] | np.ndarray[Any, Any] | None
"""One value for the whole call, or one for each slot of it. None is null."""


def _silent(
    op: Op,
    *,
    slots: Column = None,
    request: Column = None,
    row: Column = None,
    role: Role | None = None,
    outcome: Outcome | None = None,
    kind: Kind | None = None,
    component: Component | None = None,
    unit: Unit | None = None,
    source: Source = Source.HOST,
    forward: int | None = None,
    launch: int | None = None,
    stream: int | None = None,
    micro_batch: int | None = None,
    pool: int = 0,
    depth_before: Column = None,
    depth: Column = None,
    label: Column = None,
    grid: Column = None,
    ring: Column = None,
    step: Column = None,
    accept_len: Column = None,
    src_slot: Column = None,
    src_row: Column = None,
    node: Column = None,
    token_hash: Column = None,
    digest: Column = None,
    amends: int | None = None,
) -> int:
    """Say one engine operation: one record, one event per slot.

    Lists must be as long as `slots`; enums are scalars. Never raises, never blocks, never grows.

    Returns:
        The record's order within the process; for FORWARD_LAUNCH, the `launch` of its device acts.
        0 while off.
    """
    return 0


emit = _silent


def request(request_id: str, *, attempt: int = 0, client_id: str = "", trace_parent: str = "") -> int:
    """A number for a request, unique in this process; the trace keeps the pair. 0 while off."""
    return 0


def hook(name: str, ops: Sequence[Op], *, live: bool) -> None:
    """Say that the place `name` reports `ops`, or that it can't. Detectors that need a dead hook are blind."""


def note(key: str, value: str | int | float | bool) -> None:
    """A fact on this process: engine, model, strategy, pool size, patches that are off."""
