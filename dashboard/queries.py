"""What the pages ask: one function and one file of `sql/` for each question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from .ask import Source, ask

MARKS_MAX = {"ownership": 2_000, "writes": 1_500, "marks": 1_500}
"""Marks of a layer on one chart: 5,000 in all. A layer with more is put on coarser pixels."""

PIXELS = 1_000
"""Columns of a chart that can be told apart."""

MARKS_PER_PIXEL = {"ownership": 1, "writes": 1, "marks": 5}
"""Marks that one lane may have in one pixel; `marks.sql` has one for each of its operations."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a chart's horizontal axis lies. `unit` is time (seconds since `zero_ns`) or order."""

    process: int
    unit: str
    zero_ns: int
    low: float
    high: float

    def values(self) -> dict[str, Any]:
        return {
            "process": self.process,
            "axis": self.unit,
            "zero": self.zero_ns,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, slots=True)
class Filter:
    """What is shown of the slots; empty or None lets all through."""

    slots: tuple[int, ...] = ()
    request: str | None = None
    role: str | None = None
    ops: tuple[str, ...] = ()


def processes(source: Source) -> pa.Table:
    """One row per process, busiest first: events, first_ns, last_ns, positions, slots, ..."""
    return ask(source, "processes")


def freshness(source: Source) -> dict[str, Any]:
    """`state`: running, crashed or stopped; `until`: time of the last event (UTC), or None."""
    row: dict[str, Any] = ask(source, "freshness").to_pylist()[0]
    return row


def notes(source: Source, process: int) -> dict[str, str]:
    """What the process says of itself: engine, model, strategy, patches that are off."""
    rows = ask(source, "notes", process=process).to_pylist()
    return {row["key"]: row["value"] for row in rows}


def lanes(
    source: Source, axis: Axis, filter: Filter, *, limit: int, first: tuple[int, ...] = ()
) -> pa.Table:
    """Slots to draw: pool, slot, acts, leases; `total` counts those that would fit the filter.

    Where `limit` leaves some out, the slots in `first` stay, and then the busiest.
    """
    return ask(
        source, "lanes", **axis.values(), slots=filter.slots, request=filter.request,
        first=first, limit=limit,
    )  # fmt: skip


def _drawn(
    source: Source, name: str, axis: Axis, filter: Filter, lanes: tuple[int, ...]
) -> pa.Table:
    """The layer `name`, one mark per pixel; on as few pixels as keep it below MARKS_MAX."""

    def on(pixels: int) -> pa.Table:
        width = max(axis.high - axis.low, 1e-9) / pixels
        return ask(
            source, name, **axis.values(), lanes=lanes, pixel=width, role=filter.role,
            ops=filter.ops,
        )  # fmt: skip

    fine = on(PIXELS)
    if fine.num_rows <= MARKS_MAX[name]:
        return fine
    return on(max(MARKS_MAX[name] // (len(lanes) * MARKS_PER_PIXEL[name]) - 1, 1))


def ownership(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Stretches of one owner and role: pool, slot, generation, role, request, node, x, x2, held."""
    return _drawn(source, "ownership", axis, filter, lanes)


def writes(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Writes in flight, launch to result: pool, slot, forward, kind, ops, depth, x, x2, open."""
    return _drawn(source, "writes", axis, filter, lanes)


def marks(source: Source, axis: Axis, filter: Filter, lanes: tuple[int, ...]) -> pa.Table:
    """Acts that move a state between owners: pool, slot, op, label, depth, node, x, folded."""
    return _drawn(source, "marks", axis, filter, lanes)


def density(source: Source, axis: Axis, *, bins: int) -> pa.Table:
    """Acts in each of `bins` equal parts of the axis: bin, acts. Empty parts are left out."""
    return ask(source, "density", **axis.values(), bins=bins)


def history(
    source: Source, axis: Axis, filter: Filter, *, pool: int, slot: int, limit: int
) -> pa.Table:
    """The events of one slot within the axis, in the order in which they took effect."""
    return ask(
        source, "history", **axis.values(), pool=pool, slot=slot, ops=filter.ops,
        role=filter.role, limit=limit,
    )  # fmt: skip


def requests(source: Source, axis: Axis, *, limit: int) -> pa.Table:
    """The latest requests that touched a slot, latest first: request_id, request, acts, ..."""
    return ask(source, "requests", **axis.values(), limit=limit)


def witness(source: Source, axis: Axis, events: tuple[int, ...]) -> pa.Table:
    """The events with these ids, in the order in which they took effect."""
    return ask(source, "witness", **axis.values(), events=events)


def around(
    source: Source, axis: Axis, *, pool: int, slot: int, events: tuple[int, ...]
) -> pa.Table:
    """The acts on a slot near the witness events of a finding, numbered by `turn` from 1."""
    return ask(
        source, "around", **axis.values(), pool=pool, slot=slot, events=events, reach=7, limit=48
    )


def stages(source: Source, axis: Axis, *, limit: int) -> pa.Table:
    """Pipeline stages, in order: process, pool, forwards. None where there's no pipeline."""
    return ask(source, "stages", **axis.values(), limit=limit)


def computes(source: Source, axis: Axis, *, limit: int) -> pa.Table:
    """What each stage computes when: process, pool, forward, kind, micro_batch, requests, x, x2;
    `total` counts those in the window."""
    return ask(source, "computes", **axis.values(), limit=limit)


def pairs(source: Source, axis: Axis, *, limit: int) -> pa.Table:
    """The view `relays`, placed on the axis: plan_x, sent_x, result_x, commit_x, done_x; wrong ones
    first, `total` counts those in the window."""
    return ask(source, "pairs", **axis.values(), limit=limit)


def pairings(source: Source, axis: Axis, *, bins: int) -> pa.Table:
    """How verifies were paired in each of `bins` equal parts of the axis: pairing, bin, verifies,
    and x, where the first one lies."""
    return ask(source, "pairings", **axis.values(), bins=bins)


def vicinity(
    source: Source, axis: Axis, x: float, *, forward: int | None, before: int, after: int
) -> Axis:
    """The part of the axis with so many forwards around the launch of `forward`; around `x`, and
    with it, where that is None or unknown."""
    answer = ask(
        source, "vicinity", **axis.values(), x=x, forward=forward, before=before, after=after
    )
    (row,) = answer.to_pylist()
    if row["low"] is None:
        return axis
    low, high = row["low"], row["high"]
    if not row["named"]:
        low, high = min(low, x), max(high, x)
    margin = (high - low) * 0.05
    return replace(axis, low=max(low - margin, axis.low), high=min(high + margin, axis.high))


def computed(source: Source, axis: Axis, *, forward: int, pool: int, limit: int) -> pa.Table:
    """All that was said of one forward on one stage."""
    return ask(source, "computed", **axis.values(), forward=forward, pool=pool, limit=limit)


def nodes(
    source: Source, axis: Axis, *, held: bool, limit: int, first: int | None = None
) -> pa.Table:
    """Nodes of the tree: node, parent, label, grid, depths, wrong, off_grid, slot, request, held,
    reads; wrong ones first, then the node `first`; `total` and `wrong_total` count all of them.

    With `held`, those alone that hold a state at the end of the trace.
    """
    return ask(source, "nodes", **axis.values(), held=held, limit=limit, first=first)


def filed(source: Source, axis: Axis, *, node: int, limit: int) -> pa.Table:
    """All that happened to a node and to the leases that it was given."""
    return ask(source, "filed", **axis.values(), node=node, limit=limit)


def stay(source: Source, axis: Axis, request: str) -> dict[str, Any] | None:
    """When a request was there (low, high), its prompt, grid, verifies, accepted, outcome; None
    where nobody speaks of it."""
    (row,) = ask(source, "stay", **axis.values(), request=request).to_pylist()
    return row if row["acts"] else None


def steps(source: Source, axis: Axis, request: str, *, limit: int) -> pa.Table:
    """What moved its live state: op, kind, forward, depth_before, depth, accept_len, x, x2."""
    width = max(axis.high - axis.low, 1e-9) / PIXELS
    return ask(source, "steps", **axis.values(), request=request, pixel=width, limit=limit)


def claims(source: Source, axis: Axis, request: str, *, limit: int) -> pa.Table:
    """Where its states are saved or named: op, role, slot, depth, label, state_depth, grid, claim,
    x; first those whose label the state contradicts."""
    return ask(source, "claims", **axis.values(), request=request, limit=limit)


def told(source: Source, axis: Axis, request: str, *, limit: int) -> pa.Table:
    """All that was said of one request within the axis."""
    return ask(source, "told", **axis.values(), request=request, limit=limit)


def occupancy(source: Source, axis: Axis, *, pool: int, bins: int) -> pa.Table:
    """Slots that are what at the end of each part of the axis: state, bin, slots, and
    `peak`, the most at once. States are live, keep, spare, scratch and cached; `locked` counts
    nodes, of those that are cached."""
    return ask(source, "occupancy", **axis.values(), pool=pool, bins=bins)


def reuse(source: Source, axis: Axis, *, pool: int, bins: int) -> pa.Table:
    """How requests began: bin, restored, cleared (requests), reused, asked (tokens)."""
    return ask(source, "reuse", **axis.values(), pool=pool, bins=bins)


def evictions(source: Source, axis: Axis, *, pool: int, limit: int) -> pa.Table:
    """Checkpoints that were evicted, those for a spare first: node, slot, label, purpose,
    for_request, x; `total` and `for_spare` count all of the window."""
    return ask(source, "evictions", **axis.values(), pool=pool, limit=limit)
