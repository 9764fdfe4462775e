"""Verify: what a speculative forward plans, what it commits, what the host learns of it later.

All commit paths move states through `update_mamba_state_after_mtp_verify`, or fold a replay ring.
EAGLE, NEXTN and NGRAM come there through `commit_mamba_states_after_verify`, DFLASH and DSPARK by
themselves, pipeline stages when the accept result is relayed to them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role

from . import layout
from .forwards import FLIGHT, landed
from .ids import Id
from .scene import Flight, Scene


def targets_chosen(scene: Scene, _: Any, batch: Any) -> None:
    """A verify's track slots are looked up."""
    flight = scene.flight
    if flight is None or batch.mamba_track_indices is None:
        return
    flight.near = near = _near(scene, flight)
    if not any(near):
        return
    flight.targets = _slots(scene, batch.mamba_track_indices)
    flight.targets_in = batch.mamba_track_indices
    planned = getattr(batch, "mamba_lazy_spec_track_positions_cpu", None)
    if planned is not None:
        keep = batch.req_to_token_pool.get_mamba_ping_pong_keep_idx
        rows = [row for row, reached in enumerate(near) if reached]
        flight.in_place = frozenset(r for r in rows if planned[r] == keep(batch.reqs[r]))


def commit_called(
    scene: Scene, target_worker: Any, batch: Any, *_: Any, **__: Any
) -> Generator[None, Any, None]:
    """Accepted states are to be committed: now, or for a forward whose result was relayed."""
    scene.relayed = getattr(batch, FLIGHT, None) if scene.flight is None else None
    flight = scene.flight or scene.relayed
    before = flight.commits if flight is not None else 0
    if flight is not None and _folds(batch):
        _written(scene, flight, batch.mamba_track_indices)
    try:
        yield
    finally:
        scene.relayed = None
    # With a replay ring, accepted inputs are folded into the state, and nothing is scattered.
    if flight is not None and flight.commits == before and _folds(batch):
        flight.commits += 1


def state_committed(
    scene: Scene,
    backend: Any,
    last_correct_step_indices: Any,
    mamba_track_indices: Any,
    *_: Any,
    **__: Any,
) -> None:
    """Accepted states go to the live slots, and a crossed boundary's to the track slots.

    These need not be the ones that were planned: a commit that waits for a relayed result runs on
    what was kept of the batch.
    """
    flight = scene.flight or scene.relayed
    if flight is not None:
        flight.commits += 1
        _written(scene, flight, mamba_track_indices)


def accept_relayed(
    scene: Scene, scheduler: Any, batch: Any, fwd_batch: Any, *_: Any, **__: Any
) -> None:
    """A pipeline stage gets the accept result of a forward that it ran before."""
    flight: Flight | None = getattr(fwd_batch, FLIGHT, None)
    if flight is not None:
        probe.emit(Op.RELAY_RECEIVE, forward=flight.number, micro_batch=flight.micro_batch)


def result_resolved(scene: Scene, _: Any, processor: Any, result: Any, batch: Any) -> None:
    """The host knows how many tokens each request's verify accepted."""
    flight: Flight | None = getattr(batch, FLIGHT, None)
    if flight is None or flight.kind is not Kind.VERIFY or flight.retired:
        return
    accepted = layout.accepted(result)
    group = flight.group
    befores = group.depths()
    afters = [before + taken for before, taken in zip(befores, accepted, strict=True)]
    group.moved(afters)
    for _time in range(flight.commits):
        _committed(scene, flight, befores, afters, accepted)
        _crossed(scene, flight, befores, afters)
    landed(flight)


def _written(scene: Scene, flight: Flight, tensor: Any) -> None:
    """Look at the track slots that a commit was given, where it may write one of them."""
    if tensor is not None and tensor is not flight.targets_in and any(flight.near or ()):
        flight.written = _slots(scene, tensor)


def _slots(scene: Scene, tensor: Any) -> list[Id]:
    """The slots in a tensor of SGLang's; None where a negative number says that there is none."""
    slots = scene.ids.of(tensor)
    return [None if isinstance(slot, int) and slot < 0 else slot for slot in slots]


def _near(scene: Scene, flight: Flight) -> list[bool]:
    """Of each request, whether a verify may cross a grid line, as far as the host knows."""
    if scene.grids is None:
        return []
    step, reach = scene.grids.step, scene.reach
    return [depth // step != (depth + reach) // step for depth in flight.group.depths()]


def _folds(batch: Any) -> bool:
    states = batch.req_to_token_pool.mamba_pool
    return getattr(states, "replayssm_spec_write_pos", None) is not None


def _committed(
    scene: Scene, flight: Flight, befores: list[int], afters: list[int], accepted: list[int]
) -> None:
    scene.speech.say(
        Op.SCATTER,
        flight.group.slots,
        request=flight.group.numbers,
        row=flight.group.rows,
        role=Role.LIVE,
        step=[taken - 1 for taken in accepted] if scene.chain else None,
        accept_len=accepted,
        depth_before=befores,
        depth=afters,
        **flight.said,
    )


def _crossed(scene: Scene, flight: Flight, befores: list[int], afters: list[int]) -> None:
    group = flight.group
    slots = flight.written or flight.targets
    if scene.grids is None or slots is None:
        return
    crossed = [
        (i, depth)
        for i, (before, after) in enumerate(zip(befores, afters, strict=True))
        if slots[i] is not None and (depth := scene.grids.crossed(before, after)) is not None
    ]
    if crossed:
        flight.tracked = [i for i, _ in crossed]
        scene.speech.say(
            Op.SCATTER,
            [slots[i] for i, _ in crossed],
            request=[group.told[i].number for i, _ in crossed],
            row=[group.rows[i] for i, _ in crossed],
            role=Role.SPARE,
            step=[depth - befores[i] - 1 for i, depth in crossed] if scene.chain else None,
            depth=[depth for _, depth in crossed],
            grid=scene.grids.track,
            **flight.said,
        )
