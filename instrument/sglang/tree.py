"""Tree: checkpoints that requests give, and checkpoints that they are pointed at."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role

from . import layout
from .ids import plain
from .requests import Match
from .scene import Book, Claim, Donation, Scene

_GIVEN = (Op.DONATE, Op.INSERT, Op.MATCH, Op.RESTORE)


def checkpoint_found(
    scene: Scene, component: Any, params: Any, result: Any
) -> Generator[None, Any, None]:
    """A request is pointed at a checkpoint, and gets a live slot to copy it into."""
    req = params.req
    if not params.cow_mamba or req is None:
        yield
        return
    told = scene.requests.of(req)
    claim = Claim(request=told.number, role=Role.LIVE)
    scene.claims.append(claim)
    try:
        found = yield
    finally:
        scene.claims.remove(claim)
    book = _book(scene, component.cache)
    source = layout.holder(req).mamba_cow_src_index
    node, label = layout.node(found.best_match_node), layout.matched(found)
    said: dict[str, Any] = {"request": told.number, "pool": book.pool}
    if source is None and not layout.on_host(found):
        told.match = None
        probe.emit(Op.MATCH, outcome=Outcome.MISS, **said)
        return
    said |= {"node": node, "label": label, "outcome": Outcome.HIT}
    if source is None:
        told.match = Match(None, node, label)
        probe.emit(Op.MATCH, **said)
        return
    slots = scene.ids.of(source)
    number = plain(slots[0])
    if number is not None and number not in book.nodes:
        slots = [None]
        why = "the tree has a checkpoint that no request gave it: a host tier's, or another host's"
        scene.blind((Op.MATCH, Op.RESTORE), why)
    told.match = Match(slots[0], node, label)
    scene.speech.say(Op.MATCH, slots[:1], **said)


def checkpoint_given(
    scene: Scene,
    component: Any,
    req: Any,
    insert_params: Any,
    token_ids_len: int,
    is_finished: bool,
) -> Generator[None, Any, None]:
    """A request makes its checkpoint ready for the tree. It is said when the tree takes it."""
    told = scene.requests.of(req)
    claim = Claim(request=told.number, role=Role.KEEP, live=scene.requests.live(req))
    scene.claims.append(claim)
    try:
        label = yield
    finally:
        scene.claims.remove(claim)
    if insert_params.mamba_value is None or not label:
        return
    if component.int8_ckpt_pool is not None:
        scene.blind(_GIVEN, "checkpoints of 8 bits lie in a pool that is not watched")
        return
    slots = scene.ids.of(insert_params.mamba_value)
    tracked = component.cache.enable_mamba_extra_buffer or not is_finished
    role = Role.KEEP if tracked else Role.LIVE
    scene.donation = Donation(told, slots, int(label), role)


def checkpoint_filed(scene: Scene, cache: Any, params: Any) -> Generator[None, Any, None]:
    """The tree files a state under a prefix, or has one for it already."""
    donation, scene.donation = scene.donation, None
    length = len(params.key) if params.key is not None else 0
    if donation is None or params.mamba_value is None or not length:
        yield
        return
    scene.filing = length
    rows = cache.req_to_token_pool
    digests = scene.digests.of(rows, params.mamba_value) if scene.digests is not None else None
    try:
        result = yield
    finally:
        scene.filing = None
    book, node = _book(scene, cache), layout.node(result.last_device_node)
    said: dict[str, Any] = {"request": donation.told.number, "node": node, "pool": book.pool}
    outcome = Outcome.EXISTS if result.mamba_exist else None
    if getattr(result, "rotation_tail_declined", False):
        outcome = Outcome.FAILED
    slots = donation.slots
    given: dict[str, Any] = {"label": donation.label, "role": donation.role, "digests": digests}
    scene.speech.say(Op.DONATE, slots, **given, **said)
    scene.speech.say(Op.INSERT, slots, label=length, outcome=outcome, **said)
    if outcome is None:
        book.hold(slots, node, length)


def checkpoint_kept(
    scene: Scene,
    component: Any,
    req: Any,
    is_finished: bool,
    insert_result: Any = None,
    insert_params: Any = None,
) -> None:
    """A request gives nothing, although it had a checkpoint."""
    donation, scene.donation = scene.donation, None
    if insert_result is not None:
        return
    told = scene.requests.of(req)
    book = _book(scene, component.cache)
    holder = layout.holder(req)
    said: dict[str, Any] = {"outcome": Outcome.SUPPRESSED, "pool": book.pool}
    if donation is not None:
        said |= {"label": donation.label, "role": donation.role}
        scene.speech.say(Op.DONATE, donation.slots, request=told.number, **said)
    elif is_finished and getattr(holder, "mamba_ping_pong_track_buffer", None) is not None:
        label = holder.mamba_last_track_seqlen
        if label and told.keep_slot is not None:
            said |= {"label": label, "role": Role.KEEP}
            scene.speech.say(Op.DONATE, [told.keep_slot], request=told.number, **said)


def state_copied(scene: Scene, pool: Any, src_indices: Any, dst_indices: Any) -> None:
    """Without track slots, a running request's live state is copied for the tree."""
    claim = scene.claims[-1] if scene.claims else None
    if claim is None or claim.role is not Role.KEEP or claim.live is None:
        return
    sources, targets = scene.ids.of(src_indices), scene.ids.of(dst_indices)
    depth = claim.live.depth
    scene.speech.say(Op.COPY, targets, sources, request=claim.request, role=Role.NODE, depth=depth)


def nodes_emptied(scene: Scene, *_: Any) -> Generator[None, Any, None]:
    """Slots are freed that tree nodes held."""
    scene.evicting = True
    try:
        yield
    finally:
        scene.evicting = False


def _book(scene: Scene, cache: Any) -> Book:
    return scene.book(cache.req_to_token_pool.mamba_allocator)
