"""What the trace is told of a forward: at launch, what is decided; at retirement, what was not yet.

The acts of a forward all carry its `launch`, so that the trace sorts them in stream order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role, Unit

from .batch import Batch, Flight, Item
from .grids import Grids
from .running import Target


def launched(number: int, batch: Batch, grids: Grids) -> int:
    """Tell of a forward that is about to run. Returns its place in stream order."""
    if not probe.level:
        return 0
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=number, kind=batch.kind, stream=0)
    if batch.kind is Kind.VERIFY:
        _plans(number, launch, batch)
        return launch
    if batch.kind is Kind.PREFILL:
        _initialised(number, launch, batch)
    items = batch.items
    probe.emit(
        Op.ADVANCE,
        slots=[item.live_slot for item in items],
        request=[item.running.number for item in items],
        row=[item.running.row for item in items],
        role=Role.LIVE,
        depth_before=[item.start for item in items],
        depth=[item.end for item in items],
        forward=number,
        kind=batch.kind,
        launch=launch,
    )
    _tracks(number, launch, batch, grids)
    return launch


def retired(
    flight: Flight, before: list[int], paths: list[list[int]], grids: Grids, *, commits: bool
) -> None:
    """Tell that the host has read a forward's result, and what a verify has done with it.

    `paths` are the accepted nodes of each row, which are tokens in a chain.
    `commits` is false where the drafter's verify moves no state, as before `shared-commit`.
    """
    if not probe.level:
        return
    kind = flight.batch.kind
    if kind is Kind.VERIFY and commits:
        _commits(flight, before, paths)
        _crossings(flight, before, paths, grids)
    probe.emit(Op.FORWARD_DONE, forward=flight.number, kind=kind, launch=flight.launch)


def _initialised(number: int, launch: int, batch: Batch) -> None:
    fresh = [item for item in batch.items if item.fresh]
    restored = [item for item in fresh if item.source is not None]
    cleared = [item for item in fresh if item.source is None]
    said: dict[str, Any] = {
        "forward": number,
        "kind": batch.kind,
        "launch": launch,
        "role": Role.LIVE,
    }
    if restored:
        probe.emit(
            Op.RESTORE,
            slots=[item.live_slot for item in restored],
            request=[item.running.number for item in restored],
            src_slot=[item.source for item in restored],
            node=[item.node for item in restored],
            label=[item.start for item in restored],
            depth=[item.start for item in restored],
            **said,
        )
    if cleared:
        probe.emit(
            Op.CLEAR,
            slots=[item.live_slot for item in cleared],
            request=[item.running.number for item in cleared],
            depth=0,
            **said,
        )


def _tracks(number: int, launch: int, batch: Batch, grids: Grids) -> None:
    prefill = batch.kind is Kind.PREFILL
    for role, tracked in _by_role(batch):
        depths = [_depth(item.target) for item in tracked]
        starts = [item.start for item in tracked]
        probe.emit(
            Op.SCATTER if prefill else Op.COPY,
            slots=[item.target.slot for item in tracked if item.target],
            request=[item.running.number for item in tracked],
            row=[item.running.row for item in tracked],
            role=role,
            src_slot=None if prefill else [item.live_slot for item in tracked],
            unit=Unit.TOKEN if prefill else None,
            step=[d - s for d, s in zip(depths, starts, strict=True)] if prefill else None,
            depth=depths,
            grid=grids.checkpoint if prefill else grids.track,
            forward=number,
            kind=batch.kind,
            launch=launch,
        )


def _plans(number: int, launch: int, batch: Batch) -> None:
    aimless = [item for item in batch.items if item.target is None]
    for role, items in (*_by_role(batch), (None, aimless)):
        if items:
            probe.emit(
                Op.VERIFY_PLAN,
                slots=[item.target.slot if item.target else None for item in items],
                request=[item.running.number for item in items],
                row=[item.running.row for item in items],
                role=role,
                depth_before=[item.start for item in items],
                forward=number,
                kind=batch.kind,
                launch=launch,
            )


def _by_role(batch: Batch) -> Iterator[tuple[Role, list[Item]]]:
    """The items that may leave a checkpoint, by what its slot is to the request."""
    for role in (Role.KEEP, Role.SPARE):
        items = [item for item in batch.items if item.target and item.target.role is role]
        if items:
            yield role, items


def _commits(flight: Flight, before: list[int], paths: list[list[int]]) -> None:
    items = flight.batch.items
    probe.emit(
        Op.SCATTER,
        slots=flight.slots,
        request=[item.running.number for item in items],
        row=[item.running.row for item in items],
        role=Role.LIVE,
        src_row=[item.running.row for item in items],
        step=[path[-1] for path in paths],
        accept_len=[len(path) for path in paths],
        depth_before=before,
        depth=[start + len(path) for start, path in zip(before, paths, strict=True)],
        forward=flight.number,
        kind=Kind.VERIFY,
        launch=flight.launch,
    )


def _crossings(flight: Flight, before: list[int], paths: list[list[int]], grids: Grids) -> None:
    crossed: dict[Role, list[tuple[Item, Target, int, int]]] = {}
    for item, start, path in zip(flight.batch.items, before, paths, strict=True):
        depth = grids.crossed(start, start + len(path))
        if item.target is not None and depth is not None:
            node = path[depth - start - 1]
            crossed.setdefault(item.target.role, []).append((item, item.target, node, depth))
    for role, tracks in crossed.items():
        probe.emit(
            Op.SCATTER,
            slots=[target.slot for _, target, _, _ in tracks],
            request=[item.running.number for item, *_ in tracks],
            row=[item.running.row for item, *_ in tracks],
            role=role,
            src_row=[item.running.row for item, *_ in tracks],
            step=[node for _, _, node, _ in tracks],
            depth=[depth for *_, depth in tracks],
            grid=grids.track,
            forward=flight.number,
            kind=Kind.VERIFY,
            launch=flight.launch,
        )


def _depth(target: Target | None) -> int:
    assert target is not None
    assert target.depth is not None, "prefill and decode know at launch what they track"
    return target.depth
