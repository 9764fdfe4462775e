"""What the trace is told of a forward: at launch, what is decided; at retirement, what was not yet.

The acts of a forward all carry its `launch`, so that the trace sorts them in stream order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Component, Kind, Op, Outcome, Role, Unit

from .batch import Batch, Item, Launch
from .grids import Grids
from .running import Target


def launched(number: int, batch: Batch, micro_batch: int | None = None) -> Launch:
    """Tell of a forward that is about to run."""
    order = probe.emit(
        Op.FORWARD_LAUNCH, forward=number, kind=batch.kind, stream=0, micro_batch=micro_batch
    )
    slots = tuple(item.live_slot for item in batch.items)
    return Launch(number, order, batch, slots, micro_batch)


def staged(
    launch: Launch, grids: Grids, pool: int = 0, scratch: Sequence[int] | None = None
) -> None:
    """Tell what a stage, whose slots are those of `pool`, is about to do for a forward.

    `scratch` names the scratch rows of a verify, which are the requests' own where it is left out.
    """
    if not probe.level:
        return
    batch = launch.batch
    said = _said(launch, pool)
    if batch.kind is Kind.VERIFY:
        _plans(batch, scratch or _rows(batch.items), grids, said)
        return
    if batch.kind is Kind.PREFILL:
        _initialised(batch, said)
    items = batch.items
    probe.emit(
        Op.ADVANCE,
        slots=launch.slots,
        **_whose(items),
        role=Role.LIVE,
        depth_before=[item.start for item in items],
        depth=[item.end - item.left for item in items],
        ring=_ring([item.left for item in items]),
        **said,
    )
    _tracks(batch, grids, said)


def committed(
    launch: Launch,
    before: list[int],
    paths: list[list[int]],
    grids: Grids,
    pool: int = 0,
    *,
    scratch: Sequence[int] | None = None,
    micro_batch: int | None = None,
    component: Component | None = None,
) -> None:
    """Tell what a verify has done with what it accepted, on the stage whose slots are `pool`'s.

    `paths` are the accepted nodes of each row, which are tokens in a chain. `micro_batch` is that
    of the relayed result, which should be the verify's own; `component` what alone was moved, if
    not all was; `scratch` as in `staged`.
    """
    if probe.level:
        said = _said(launch, pool) | {"micro_batch": micro_batch, "component": component}
        rows = scratch or _rows(launch.batch.items)
        _commits(launch, before, paths, rows, said)
        _crossings(launch, before, paths, rows, grids, said)


def refused(launch: Launch, accept: Sequence[int], pool: int, micro_batch: int) -> None:
    """Tell of a commit to `launch`'s slots that came to nothing: the result that was relayed, of
    `micro_batch`, is for another number of requests."""
    if probe.level:
        items = launch.batch.items
        known = [*accept, *[None] * len(items)]
        probe.emit(
            Op.SCATTER,
            slots=launch.slots,
            **_whose(items),
            role=Role.LIVE,
            accept_len=known[: len(items)],
            outcome=Outcome.FAILED,
            **_said(launch, pool) | {"micro_batch": micro_batch},
        )


def retired(launch: Launch) -> None:
    """Tell that the host has read a forward's result."""
    probe.emit(
        Op.FORWARD_DONE,
        forward=launch.number,
        kind=launch.batch.kind,
        launch=launch.order,
        micro_batch=launch.micro_batch,
    )


def _said(launch: Launch, pool: int) -> dict[str, Any]:
    """What all acts of a forward on one stage have in common."""
    return {
        "forward": launch.number,
        "kind": launch.batch.kind,
        "launch": launch.order,
        "micro_batch": launch.micro_batch,
        "pool": pool,
    }


def _ring(inputs: list[int]) -> list[int] | None:
    """Inputs in replay rings; nothing where all are empty."""
    return inputs if any(inputs) else None


def _whose(items: Sequence[Item]) -> dict[str, Any]:
    """The requests of an act, and the rows that they have."""
    return {
        "request": [item.running.number for item in items],
        "row": _rows(items),
    }


def _rows(items: Sequence[Item]) -> list[int]:
    return [item.running.row for item in items]


def _initialised(batch: Batch, said: dict[str, Any]) -> None:
    fresh = [item for item in batch.items if item.fresh]
    restored = [item for item in fresh if item.source is not None]
    cleared = [item for item in fresh if item.source is None]
    if restored:
        probe.emit(
            Op.RESTORE,
            slots=[item.live_slot for item in restored],
            request=[item.running.number for item in restored],
            src_slot=[item.source for item in restored],
            node=[item.node for item in restored],
            label=[item.start for item in restored],
            depth=[item.start - item.pending for item in restored],
            ring=_ring([item.pending for item in restored]),
            token_hash=[item.running.request.token_hash(item.start) for item in restored],
            role=Role.LIVE,
            **said,
        )
    if cleared:
        probe.emit(
            Op.CLEAR,
            slots=[item.live_slot for item in cleared],
            request=[item.running.number for item in cleared],
            depth=0,
            role=Role.LIVE,
            **said,
        )


def _tracks(batch: Batch, grids: Grids, said: dict[str, Any]) -> None:
    """Chunks scatter a state from their midst, decode steps copy the live one."""
    for decodes in (False, True):
        for role, tracked in _by_role([item for item in batch.items if item.decodes is decodes]):
            # Who resumes from it will not look into its ring: it counts with what is in the state.
            depths = [_depth(item.target) - item.left for item in tracked]
            starts = [item.start for item in tracked]
            probe.emit(
                Op.COPY if decodes else Op.SCATTER,
                slots=[item.target.slot for item in tracked if item.target],
                **_whose(tracked),
                role=role,
                src_slot=[item.live_slot for item in tracked] if decodes else None,
                unit=None if decodes else Unit.TOKEN,
                step=None if decodes else [d - s for d, s in zip(depths, starts, strict=True)],
                depth=depths,
                grid=grids.track if decodes else grids.checkpoint,
                **said,
            )


def _plans(batch: Batch, scratch: Sequence[int], grids: Grids, said: dict[str, Any]) -> None:
    aimless = [item for item in batch.items if item.target is None]
    held = dict(zip(_rows(batch.items), scratch, strict=True))
    for role, items in (*_by_role(batch.items), (None, aimless)):
        if items:
            probe.emit(
                Op.VERIFY_PLAN,
                slots=[item.target.slot if item.target else None for item in items],
                **_whose(items),
                role=role,
                src_row=[held[item.running.row] for item in items],
                depth_before=[item.start for item in items],
                grid=None if role is None else grids.track,
                **said,
            )


def _by_role(items: Sequence[Item]) -> Iterator[tuple[Role, list[Item]]]:
    """The items that may leave a checkpoint, by what its slot is to the request."""
    for role in (Role.KEEP, Role.SPARE):
        aimed = [item for item in items if item.target and item.target.role is role]
        if aimed:
            yield role, aimed


def _commits(
    launch: Launch,
    before: list[int],
    paths: list[list[int]],
    rows: Sequence[int],
    said: dict[str, Any],
) -> None:
    items = launch.batch.items
    probe.emit(
        Op.SCATTER,
        slots=launch.slots,
        **_whose(items),
        role=Role.LIVE,
        src_row=rows,
        step=[path[-1] for path in paths],
        accept_len=[len(path) for path in paths],
        depth_before=before,
        depth=[start + len(path) for start, path in zip(before, paths, strict=True)],
        **said,
    )


def _crossings(
    launch: Launch,
    before: list[int],
    paths: list[list[int]],
    rows: Sequence[int],
    grids: Grids,
    said: dict[str, Any],
) -> None:
    crossed: dict[Role, list[tuple[Item, Target, int, int, int]]] = {}
    for item, row, start, path in zip(launch.batch.items, rows, before, paths, strict=True):
        depth = grids.crossed(start, start + len(path)) if grids.saves else None
        if item.target is not None and depth is not None:
            node = path[depth - start - 1]
            crossed.setdefault(item.target.role, []).append((item, item.target, row, node, depth))
    for role, tracks in crossed.items():
        probe.emit(
            Op.SCATTER,
            slots=[target.slot for _, target, *_ in tracks],
            **_whose([item for item, *_ in tracks]),
            role=role,
            src_row=[row for _, _, row, _, _ in tracks],
            step=[node for *_, node, _ in tracks],
            depth=[depth for *_, depth in tracks],
            grid=grids.track,
            **said,
        )


def _depth(target: Target | None) -> int:
    assert target is not None
    assert target.depth is not None, "prefill and decode know at launch what they track"
    return target.depth
