"""Forwards: what a launched batch does to states, told at its launch as far as it is known then.

What a verify accepted is known when its result is read: see verify.py.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Outcome, Role, Unit

from . import grids, layout, notes
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
    lives = [scene.requests.live(req) for req in batch.reqs]
    if not lives or any(live is None for live in lives):
        setattr(batch, FLIGHT, None)
        yield  # An idle batch, or a model that has no recurrent state.
        return
    if scene.grids is None:
        _first(scene, scheduler)
    flight = _launched(scene, batch, [live for live in lives if live is not None])
    depths = _depths(flight, batch)
    tracks = [*_tracks(scene, flight, batch, depths)]
    scene.flight = flight
    setattr(batch, FLIGHT, flight)
    try:
        yield
    finally:
        scene.flight = None
    if flight.kind is Kind.VERIFY:
        _planned(scene, flight)
    else:
        _advanced(scene, flight, depths)
        _tracked(scene, flight, tracks, [before for before, _ in depths])
    swaps_looked_up(scene, batch)


def batch_copied(scene: Scene, result: Any, batch: Any) -> None:
    """The result queue keeps a copy of a launched batch."""
    setattr(result, FLIGHT, getattr(batch, FLIGHT, None))


def track_planned(scene: Scene, result: Any, batch: Any, req: Any) -> None:
    """A request is about to be prefilled; this may leave a checkpoint."""
    depth = layout.holder(req).mamba_last_track_seqlen
    scene.requests.of(req).track = depth if result.track_mask else None


def starts_planned(scene: Scene, batch: Any, reqs: Sequence[Any]) -> None:
    """How live slots begin is settled: cleared, or restored from a checkpoint."""
    for req in reqs:
        holder = layout.holder(req)
        restored = holder.mamba_cow_src_index is not None
        first = "restore" if restored else "clear" if holder.mamba_needs_clear else None
        scene.requests.of(req).first = first


def starts_made(scene: Scene, runner: Any, forward_batch: Any) -> None:
    """The forward clears and restores slots, as its first act."""
    flight = scene.flight
    if flight is None:
        return
    if forward_batch.mamba_clear_indices is not None:
        _started(scene, flight, "clear")
    if forward_batch.mamba_cow_src_indices is not None:
        _started(scene, flight, "restore")


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
    """The host is through with a result."""
    swaps_looked_up(scene, batch)


def request_over(scene: Scene, req: Any, *_: Any, **__: Any) -> None:
    """A request ends, or gives up its slots to start over later."""
    if layout.row(req) is None:
        return  # It never was admitted.
    told = scene.requests.of(req)
    depth = told.live.depth if told.live is not None else None
    said: dict[str, Any] = {"request": told.number, "row": layout.row(req), "depth": depth}
    if req.finished():
        aborted = type(req.finished_reason).__name__ == "FINISH_ABORT"
        outcome = Outcome.ABORTED if aborted else Outcome.FINISHED
        probe.emit(Op.REQUEST_END, label=layout.tokens(req), outcome=outcome, **said)
    else:
        probe.emit(Op.RETRACT, **said)


def request_again(scene: Scene, _: Any, req: Any, *__: Any, **___: Any) -> None:
    """A request was retracted."""
    scene.requests.again(scene.requests.of(req))


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


def swaps_looked_up(scene: Scene, batch: Any) -> None:
    """Tell of ping-pong pointers that moved since they were looked at last.

    SGLang moves them in functions that it calls for each request in each step, and a hook there
    would cost more than all the others together.
    """
    pool = batch.req_to_token_pool
    if not getattr(pool, "enable_mamba_extra_buffer", False):
        return
    book = scene.book(pool.mamba_allocator)
    for req in batch.reqs:
        holder = layout.holder(req)
        buffer = holder.mamba_ping_pong_track_buffer
        if buffer is None:
            continue
        told = scene.requests.of(req)
        keep = pool.get_mamba_ping_pong_keep_idx(req)
        if keep == told.keep or keep is None:
            continue
        old, told.keep = told.keep_slot, keep
        (told.keep_slot,) = scene.ids.of(buffer[keep : keep + 1])
        if old is not None:
            said = {"label": holder.mamba_last_track_seqlen, "role": Role.KEEP}
            slots = [told.keep_slot], [old]
            scene.speech.say(Op.SWAP, *slots, request=told.number, pool=book.pool, **said)


def _first(scene: Scene, scheduler: Any) -> None:
    scene.grids = grids.of(scheduler.tree_cache, scheduler.server_args)
    notes.tell(scheduler)


def _launched(scene: Scene, batch: Any, lives: list[Any]) -> Flight:
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
    told = [scene.requests.of(req) for req in batch.reqs]
    rows = [layout.row(req) for req in batch.reqs]
    return Flight(number, kind, launch, pool, told, lives, rows, micro_batch)


def _depths(flight: Flight, batch: Any) -> list[tuple[int, int]]:
    """(before, after) of each request's live state. Host values of the batch."""
    if flight.kind is Kind.VERIFY:
        return []
    if flight.kind is Kind.DECODE:
        depths = [(after - 1, after) for after in batch.seq_lens_cpu.tolist()]
    else:
        lengths = zip(batch.prefix_lens, batch.extend_lens, strict=True)
        depths = [(before, before + length) for before, length in lengths]
    for live, (_, after) in zip(flight.lives, depths, strict=True):
        live.depth = after
    return depths


def _tracks(
    scene: Scene, flight: Flight, batch: Any, depths: list[tuple[int, int]]
) -> Iterator[_Track]:
    targets = batch.mamba_track_indices
    if targets is None or flight.kind is Kind.VERIFY:
        return
    if flight.kind is Kind.PREFILL:
        wanted = [(row, told.track) for row, told in enumerate(flight.told)]
    else:
        mask = _mask(scene, batch, depths)
        wanted = [(row, depths[row][1] if mask[row] else None) for row in range(len(depths))]
    for told in flight.told:
        told.track = None
    rows = [(row, depth) for row, depth in wanted if depth is not None and row < len(targets)]
    if rows:
        slots = scene.ids.of(targets)
        for row, depth in rows:
            yield _Track(row, slots[row], depth)


def _mask(scene: Scene, batch: Any, depths: list[tuple[int, int]]) -> Sequence[bool]:
    """Which requests of a decode stand on the track grid. The host computes it in old releases."""
    mask: Sequence[bool] | None = getattr(batch, "mamba_track_mask_cpu", None)
    if mask is not None:
        return mask
    step = scene.grids.step if scene.grids is not None else 0
    return [step > 0 and after % step == 0 for _, after in depths]


def _started(scene: Scene, flight: Flight, first: str) -> None:
    some = [i for i, told in enumerate(flight.told) if told.first == first]
    for i in some:
        flight.told[i].first = None
    slots = [flight.lives[i].slot for i in some]
    said: dict[str, Any] = {"request": [flight.told[i].number for i in some], "role": Role.LIVE}
    if first == "clear":
        if some:
            scene.speech.say(Op.CLEAR, slots, depth=0, **said, **flight.said)
        return
    matches = [flight.told[i].match for i in some]
    found = [match for match in matches if match is not None]
    if found and len(found) == len(some):
        labels = [match.label for match in found]
        sources = [match.slot for match in found]
        said |= {"node": [match.node for match in found], "label": labels, "depth": labels}
        scene.speech.say(Op.RESTORE, slots, sources, **said, **flight.said)


def _advanced(scene: Scene, flight: Flight, depths: list[tuple[int, int]]) -> None:
    scene.speech.say(
        Op.ADVANCE,
        [live.slot for live in flight.lives],
        request=[told.number for told in flight.told],
        row=flight.rows,
        role=Role.LIVE,
        depth_before=[before for before, _ in depths],
        depth=[after for _, after in depths],
        **flight.said,
    )


def _tracked(scene: Scene, flight: Flight, tracks: list[_Track], befores: list[int]) -> None:
    if not tracks:
        return
    prefill = flight.kind is Kind.PREFILL
    said: dict[str, Any] = {"role": Role.SPARE}
    sources = [flight.lives[track.row].slot for track in tracks]
    if prefill:
        steps = [track.depth - befores[track.row] for track in tracks]
        said = {"role": Role.KEEP, "unit": Unit.TOKEN, "step": steps}
    elif scene.grids is not None:
        said["grid"] = scene.grids.track
    scene.speech.say(
        Op.SCATTER if prefill else Op.COPY,
        [track.slot for track in tracks],
        None if prefill else sources,
        request=[flight.told[track.row].number for track in tracks],
        row=[flight.rows[track.row] for track in tracks],
        depth=[track.depth for track in tracks],
        **said,
        **flight.said,
    )


def _planned(scene: Scene, flight: Flight) -> None:
    """What a verify may write beside its scratch rows."""
    every = range(len(flight.told))
    in_place = flight.in_place or [False] * len(flight.told)
    near = flight.near or [True] * len(flight.told)
    targets = flight.targets or [None] * len(flight.told)
    for role in (Role.KEEP, Role.SPARE):
        some = [i for i in every if in_place[i] == (role is Role.KEEP)]
        if some:
            scene.speech.say(
                Op.VERIFY_PLAN,
                [targets[i] if near[i] else None for i in some],
                request=[flight.told[i].number for i in some],
                row=[flight.rows[i] for i in some],
                role=role,
                outcome=Outcome.IN_PLACE if role is Role.KEEP else None,
                depth_before=[flight.lives[i].depth for i in some],
                **flight.said,
            )
