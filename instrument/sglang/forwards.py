"""Forwards: what a launched batch does to states, told at its launch as far as it is known then.

What a verify accepted is known when its result is read: see verify.py.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Outcome, Role, Unit

from . import grids, layout, locks, notes
from . import group as groups
from .group import Group
from .ids import Id
from .scene import Flight, Scene

FLIGHT = "slotscope_flight"
"""Attribute of SGLang's batches, and of the copies that its result queue keeps."""


@dataclass(frozen=True, slots=True)
class _Track:
    """A checkpoint that a prefill or decode leaves."""

    row: int  # in the batch
    slot: Id
    depth: int


def batch_run(
    scene: Scene, scheduler: Any, batch: Any, *_: Any, **__: Any
) -> Generator[None, Any, None]:
    """A batch is launched."""
    scene.speech.settle()
    group = groups.of(batch, scene.requests)
    if group is None:
        setattr(batch, FLIGHT, None)
        yield
        return
    if scene.grids is None:
        _first(scene, scheduler)
    flight = _launched(scene, batch, group)
    before, after = _depths(flight, batch)
    tracks = _tracks(scene, flight, batch, after)
    scene.flight = flight
    setattr(batch, FLIGHT, flight)
    try:
        yield
    finally:
        scene.flight = None
    if flight.kind is Kind.VERIFY:
        _planned(scene, flight)
        return
    _advanced(scene, flight, before, after)
    if tracks:
        _tracked(scene, flight, tracks, before)
    if flight.kind is Kind.PREFILL:
        swaps_looked_up(scene, batch, range(len(batch.reqs)))


def batch_copied(scene: Scene, result: Any, batch: Any) -> None:
    """The result queue keeps a copy of a launched batch."""
    setattr(result, FLIGHT, getattr(batch, FLIGHT, None))


def track_planned(scene: Scene, result: Any, batch: Any, req: Any) -> None:
    """A request is about to be prefilled; this may leave a checkpoint."""
    depth = layout.holder(req).mamba_last_track_seqlen
    scene.requests.of(req).track = depth if result.track_mask else None


def micro_batch_run(scene: Scene, scheduler: Any, mb_id: int, *_: Any, **__: Any) -> None:
    """A pipeline stage turns to a micro-batch."""
    scene.micro_batch = mb_id


def result_read(scene: Scene, scheduler: Any, batch: Any, *_: Any, **__: Any) -> None:
    """The host turns to a forward's result. That of a verify is told of once it is resolved."""
    scene.speech.settle()
    flight: Flight | None = getattr(batch, FLIGHT, None)
    if flight is not None and flight.kind is not Kind.VERIFY:
        landed(flight)


def result_used(scene: Scene, _: Any, scheduler: Any, batch: Any, *__: Any, **___: Any) -> None:
    """The host is through with a result, and may have moved pointers to what was tracked."""
    flight: Flight | None = getattr(batch, FLIGHT, None)
    if flight is not None and flight.tracked:
        swaps_looked_up(scene, batch, flight.tracked)


def idle(scene: Scene, *_: Any, **__: Any) -> None:
    """Nothing is under way, so what was asked of the device last has time to arrive."""
    scene.speech.settle()


def landed(flight: Flight) -> None:
    """Tell that the host has read a forward's result. Once."""
    if not flight.retired:
        flight.retired = True
        probe.emit(
            Op.FORWARD_DONE,
            forward=flight.number,
            kind=flight.kind,
            launch=flight.launch,
            micro_batch=flight.micro_batch,
        )


def swaps_looked_up(scene: Scene, batch: Any, rows: Iterable[int]) -> None:
    """Tell of ping-pong pointers of some requests that moved since they were looked at last.

    SGLang moves them in functions that it calls for each request in each step, and a hook there
    would cost more than all the others together.
    """
    pool = batch.req_to_token_pool
    if not getattr(pool, "enable_mamba_extra_buffer", False):
        return
    book = scene.book(pool.mamba_allocator)
    for req in [batch.reqs[row] for row in rows]:
        holder = layout.holder(req)
        buffer = holder.mamba_ping_pong_track_buffer
        if buffer is None:
            continue
        told = scene.requests.of(req)
        keep = pool.get_mamba_ping_pong_keep_idx(req)
        if keep == told.keep or keep is None:
            continue
        old, told.keep = told.keep_slot, keep
        (told.keep_slot,) = scene.ids.of(buffer[keep : keep + 1], changes=True)
        if old is not None:
            said = {"label": holder.mamba_last_track_seqlen, "role": Role.KEEP}
            slots = [told.keep_slot], [old]
            scene.speech.say(Op.SWAP, *slots, request=told.number, pool=book.pool, **said)


def _first(scene: Scene, scheduler: Any) -> None:
    scene.grids = grids.of(scheduler.tree_cache, scheduler.server_args)
    drafts = getattr(scheduler.server_args, "speculative_num_draft_tokens", None)
    scene.reach = scene.reach or 2 * (drafts or 0)
    scene.chain = _breadth(scheduler.server_args) in (None, 1)
    notes.tell(scheduler)
    if scene.digests is not None:
        scene.digests.stream = getattr(scheduler, "forward_stream", None)
        scene.digests.warm_up(scheduler.req_to_token_pool)
    locks.unseen(scene, scheduler.tree_cache)


def _breadth(arguments: Any) -> int | None:
    """How many drafts may follow one token: more than one, and a verify walks a tree."""
    ngram = getattr(arguments, "speculative_algorithm", None) == "NGRAM"
    name = "speculative_ngram_max_bfs_breadth" if ngram else "speculative_eagle_topk"
    breadth: int | None = getattr(arguments, name, None)
    return breadth


def _launched(scene: Scene, batch: Any, group: Group) -> Flight:
    scene.flights += 1
    mode = batch.forward_mode
    kind = Kind.PREFILL
    if mode.is_decode():
        kind = Kind.DECODE if batch.spec_algorithm.is_none() else Kind.VERIFY
    number, micro_batch = scene.flights, scene.micro_batch
    launch = probe.emit(
        Op.FORWARD_LAUNCH, forward=number, kind=kind, stream=0, micro_batch=micro_batch
    )
    pool = scene.book(batch.req_to_token_pool.mamba_allocator).pool
    return Flight(number, kind, launch, pool, group, micro_batch)


def _depths(flight: Flight, batch: Any) -> tuple[list[int], list[int]]:
    """Depths of the live states before and after. Host values; none for a verify."""
    if flight.kind is Kind.VERIFY:
        return [], []
    if flight.kind is Kind.DECODE:
        after: list[int] = batch.seq_lens_cpu.tolist()
        before = [depth - 1 for depth in after]
    else:
        before = list(batch.prefix_lens)
        after = [start + n for start, n in zip(before, batch.extend_lens, strict=True)]
    flight.group.moved(after)
    return before, after


def _tracks(scene: Scene, flight: Flight, batch: Any, after: list[int]) -> list[_Track]:
    if flight.kind is Kind.PREFILL:
        wanted = [(row, told.track) for row, told in enumerate(flight.group.told)]
        for told in flight.group.told:
            told.track = None
    else:
        mask = _mask(scene, batch, after) if flight.kind is Kind.DECODE else []
        wanted = [(row, after[row]) for row, tracked in enumerate(mask) if tracked]
    rows = [(row, depth) for row, depth in wanted if depth is not None]
    if not rows or batch.mamba_track_indices is None:
        return []
    flight.tracked = [row for row, _ in rows]
    slots = scene.ids.of(batch.mamba_track_indices)
    return [_Track(row, slots[row], depth) for row, depth in rows]


def _mask(scene: Scene, batch: Any, after: list[int]) -> Sequence[bool]:
    """Which requests of a decode stand on the track grid. The host computes it in old releases."""
    if batch.mamba_track_indices is None:
        return []
    mask: Sequence[bool] | None = getattr(batch, "mamba_track_mask_cpu", None)
    if mask is not None:
        return mask
    step = scene.grids.step if scene.grids is not None else 0
    return [step > 0 and depth % step == 0 for depth in after]


def _advanced(scene: Scene, flight: Flight, before: list[int], after: list[int]) -> None:
    group = flight.group
    scene.speech.say(
        Op.ADVANCE,
        group.slots,
        request=group.numbers,
        row=group.rows,
        role=Role.LIVE,
        depth_before=before,
        depth=after,
        **flight.said,
    )


def _tracked(scene: Scene, flight: Flight, tracks: list[_Track], before: list[int]) -> None:
    group, prefill = flight.group, flight.kind is Kind.PREFILL
    said: dict[str, Any] = {"role": Role.SPARE}
    sources = [group.lives[track.row].slot for track in tracks]
    if prefill:
        steps = [track.depth - before[track.row] for track in tracks]
        said = {"role": Role.KEEP, "unit": Unit.TOKEN, "step": steps}
    elif scene.grids is not None:
        said["grid"] = scene.grids.track
    scene.speech.say(
        Op.SCATTER if prefill else Op.COPY,
        [track.slot for track in tracks],
        None if prefill else sources,
        request=[group.told[track.row].number for track in tracks],
        row=[group.rows[track.row] for track in tracks],
        depth=[track.depth for track in tracks],
        **said,
        **flight.said,
    )


def _planned(scene: Scene, flight: Flight) -> None:
    """What a verify may write beside its scratch rows."""
    group = flight.group
    said = flight.said | {"depth_before": group.depths()}
    if flight.targets is None and not flight.in_place:
        slots = group.nothing
        scene.speech.say(
            Op.VERIFY_PLAN, slots, request=group.numbers, row=group.rows, role=Role.SPARE, **said
        )
        return
    for role in (Role.KEEP, Role.SPARE):
        _planned_as(scene, flight, role)


def _planned_as(scene: Scene, flight: Flight, role: Role) -> None:
    group, targets, near = flight.group, flight.targets or [], flight.near
    keeps = role is Role.KEEP
    some = [i for i in range(len(group.told)) if (i in flight.in_place) == keeps]
    if some:
        scene.speech.say(
            Op.VERIFY_PLAN,
            [targets[i] if near is None or near[i] else None for i in some],
            request=[group.told[i].number for i in some],
            row=[group.rows[i] for i in some],
            role=role,
            outcome=Outcome.IN_PLACE if keeps else None,
            depth_before=[group.lives[i].depth for i in some],
            **flight.said,
        )
