"""Pools: slots that begin and end a life, and who asked for them.

The truth is the free list, `_do_alloc` and `free`. Who asks is known from the calls around it.
At the start of a scheduling round SGLang takes a group of slots out of the list before it knows
whether anybody needs them, and puts the rest back: a lease begins when one is drawn.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role

from . import layout
from .ids import Id, known, plain
from .scene import Book, Claim, Scene


def slots_taken(scene: Scene, result: Any, allocator: Any, need_size: int) -> None:
    """The free list has given slots, or had too few."""
    scene.taken = result
    if scene.hidden:
        return
    if result is not None:
        _hand_out(scene, allocator, result)
    elif scene.claims and scene.claims[-1].role is Role.SPARE:
        # Elsewhere SGLang evicts a checkpoint and asks again, so that it is no failure yet.
        pool = scene.book(allocator).pool
        probe.emit(Op.ALLOCATE, role=Role.SPARE, outcome=Outcome.FAILED, pool=pool)


def slot_drawn(scene: Scene, result: Any, allocator: Any, need_size: int) -> None:
    """Somebody has got slots. Those that the free list did not just give come from a group."""
    if result is not None and result is not scene.taken:
        _hand_out(scene, allocator, result)
    scene.taken = None


def group_moves(scene: Scene, *_: Any) -> Generator[None, Any, None]:
    """A group is taken out of the free list, or what is left of it is put back."""
    scene.hidden = True
    try:
        yield
    finally:
        scene.hidden = False


def slots_freed(scene: Scene, allocator: Any, free_index: Any) -> None:
    """Leases end; a checkpoint's node has lost it then."""
    if scene.hidden or free_index.numel() == 0:
        return
    book = scene.book(allocator)
    slots = scene.ids.of(free_index, changes=True)
    _ended(scene, book, slots)
    for slot in slots:
        known(slot, lambda number: _forget(book, number))


def pool_cleared(scene: Scene, allocator: Any) -> None:
    """A flush: all leases end at once."""
    # SGLang flushes an idle server only. What was freed last is not to be told of again.
    scene.ids.wait()
    scene.speech.settle()
    book = scene.book(allocator)
    slots = sorted(book.owners.keys() | book.nodes.keys())
    if not slots:
        probe.note(f"sglang.pool_{book.pool}_slots", int(allocator.size))
        return
    _ended(scene, book, slots)
    book.owners.clear()
    book.nodes.clear()


def rows_given(scene: Scene, pool: Any, reqs: Sequence[Any]) -> Generator[None, Any, None]:
    """Requests are admitted: each gets a row, a live slot unless it has one, and track slots."""
    before = [(layout.row(req), *_held(req)) for req in reqs]
    claim = Claim(waiting=[])
    scene.claims.append(claim)
    try:
        result = yield
    finally:
        scene.claims.remove(claim)
    if result is None:
        return
    given = iter(claim.waiting or [])
    for req, (row, live, track) in zip(reqs, before, strict=True):
        told = scene.requests.of(req)
        if row is None:
            prompt = len(req.origin_input_ids)
            number, given_row = told.number, layout.row(req)
            probe.emit(Op.REQUEST_BEGIN, request=number, row=given_row, label=prompt)
        now_live, now_track = _held(req)
        if live is None and now_live is not None:
            _each(scene, pool.mamba_allocator, next(given), told.number, [Role.LIVE])
        if track is None and now_track is not None:
            roles = [Role.KEEP, Role.SPARE]
            _each(scene, pool.mamba_allocator, next(given), told.number, roles)


def spares_wanted(
    scene: Scene, batch: Any, mamba_track_interval: int, max_draft_tokens: int = 0
) -> Generator[None, Any, None]:
    """Lazy tracking asks for a second track slot, for requests near a boundary."""
    scene.reach = 2 * max_draft_tokens  # SGLang's: the host may be one verify behind the device.
    claim = Claim(role=Role.SPARE, waiting=[])
    scene.claims.append(claim)
    try:
        yield
    finally:
        scene.claims.remove(claim)


def track_slot_set(scene: Scene, _: Any, pool: Any, req: Any, idx: int, value: Any) -> None:
    """A track slot changes hands; one that was just allocated is the request's spare."""
    claim = scene.claims[-1] if scene.claims else None
    if claim is not None and claim.role is Role.SPARE and claim.waiting:
        told = scene.requests.of(req)
        scene.allocated(pool.mamba_allocator, claim.waiting.pop(0), told.number, Role.SPARE)


def _hand_out(scene: Scene, allocator: Any, tensor: Any) -> None:
    slots = scene.ids.of(tensor)
    claim = scene.claims[-1] if scene.claims else Claim()
    if claim.waiting is not None:
        claim.waiting.append(slots)
    else:
        scene.allocated(allocator, slots, claim.request, claim.role)


def _each(
    scene: Scene, allocator: Any, slots: Sequence[Id], request: int, roles: Sequence[Role]
) -> None:
    for slot, role in zip(slots, roles, strict=False):
        scene.allocated(allocator, [slot], request, role)


def _held(req: Any) -> tuple[Any, Any]:
    """What a request holds of the pool: its live slot, its track slots."""
    holder = layout.holder(req)
    return holder.mamba_pool_idx, getattr(holder, "mamba_ping_pong_track_buffer", None)


def _ended(scene: Scene, book: Book, slots: Sequence[Id]) -> None:
    _evicted(scene, book, slots)
    for role, request, some in _by_owner(book, slots):
        scene.speech.say(Op.FREE, some, role=role, request=request, pool=book.pool)


def _evicted(scene: Scene, book: Book, slots: Sequence[Id]) -> None:
    held = [(slot, book.nodes.get(number)) for slot in slots if (number := plain(slot)) is not None]
    known_nodes = [(slot, *node) for slot, node in held if node is not None]
    if known_nodes:
        scene.speech.say(
            Op.EVICT,
            [slot for slot, _, _ in known_nodes],
            node=[node for _, node, _ in known_nodes],
            label=[label for _, _, label in known_nodes],
            role=Role.NODE,
            pool=book.pool,
        )
    under_way = [slot for slot in slots if plain(slot) is None]
    if under_way and scene.evicting:
        scene.speech.say(Op.EVICT, under_way, role=Role.NODE, pool=book.pool)


def _by_owner(
    book: Book, slots: Sequence[Id]
) -> Iterator[tuple[Role | None, int | None, list[Id]]]:
    """Slots that have the same owner together, in the order in which they stand."""
    groups: dict[tuple[Role | None, int | None], list[Id]] = {}
    for slot in slots:
        number = plain(slot)
        request, role = book.owners.get(number, (None, None)) if number is not None else (None,) * 2
        if number in book.nodes:
            request, role = None, Role.NODE
        groups.setdefault((role, request), []).append(slot)
    for (role, request), some in groups.items():
        yield role, request, some


def _forget(book: Book, number: int) -> None:
    book.owners.pop(number, None)
    book.nodes.pop(number, None)
