"""Starts: how a request's live slot begins, as the first act of its first forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slotscope.instrument.event import Op, Role

from . import layout
from .ids import Id
from .scene import Flight, Scene


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
    if (sources := forward_batch.mamba_cow_src_indices) is not None:
        digests = None
        if scene.digests is not None:
            digests = scene.digests.of(runner.req_to_token_pool, sources)
        _started(scene, flight, "restore", digests)


def _started(scene: Scene, flight: Flight, first: str, digests: Sequence[Id] | None = None) -> None:
    group = flight.group
    some = [i for i, told in enumerate(group.told) if told.first == first]
    for i in some:
        group.told[i].first = None
    slots = [group.lives[i].slot for i in some]
    said: dict[str, Any] = {"request": [group.told[i].number for i in some], "role": Role.LIVE}
    if first == "clear":
        if some:
            scene.speech.say(Op.CLEAR, slots, depth=0, **said, **flight.said)
        return
    matches = [group.told[i].match for i in some]
    found = [match for match in matches if match is not None]
    if found and len(found) == len(some):
        labels = [match.label for match in found]
        sources = [match.slot for match in found]
        said |= {"node": [match.node for match in found], "label": labels, "depth": labels}
        if digests is not None and len(digests) == len(some):
            said["digests"] = digests
        scene.speech.say(Op.RESTORE, slots, sources, **said, **flight.said)
