"""Tier: checkpoints that leave for the host's memory (HiCache), and that come back from it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from slotscope.instrument.event import Op, Role

from . import layout
from .ids import plain
from .scene import Claim, Scene

STATES = "MAMBA"
"""SGLang's name for the pool of recurrent states, among those that a transfer covers."""


def checkpoint_offloaded(
    scene: Scene, cache: Any, node_id: Any, device_value: Any, comp_xfers: Any, *_: Any
) -> Generator[None, Any, None]:
    """A node's state is copied to the host; the node keeps its slot until it is evicted."""
    if (yield) is None:
        return  # The host has no room.
    book = scene.book(cache.req_to_token_pool.mamba_allocator)
    for transfer in _of_states(each for some in comp_xfers.values() for each in some):
        slots = scene.ids.of(transfer.device_indices)
        # A state may leave while the tree files it, before the slot is known to be the node's.
        label = book.label(plain(slots[0])) or scene.filing
        said: dict[str, Any] = {"node": layout.node(node_id), "label": label, "depth": label}
        scene.speech.say(Op.OFFLOAD, slots, role=Role.NODE, pool=book.pool, **said)


def checkpoint_wanted(
    scene: Scene, cache: Any, node_id: Any, mem_quota: Any = None, req: Any = None
) -> Generator[None, Any, None]:
    """A request needs a checkpoint that is on the host alone, and gets a live slot for it."""
    told = scene.requests.of(req) if req is not None else None
    number = told.number if told is not None else None
    claim = Claim(request=number, role=Role.LIVE, allocator=cache.req_to_token_pool.mamba_allocator)
    if told is not None and told.match is not None and told.match.node == layout.node(node_id):
        claim.label = told.match.label
    scene.claims.append(claim)
    try:
        yield
    finally:
        scene.claims.remove(claim)


def states_loaded(
    scene: Scene, controller: Any, *_: Any, node_id: Any = None, extra_pools: Any = None, **__: Any
) -> Generator[None, Any, None]:
    """A node's state comes back, into a slot of the node's and, at once, into the request's."""
    wanted = scene.claims[-1] if scene.claims else None
    claim = Claim(role=Role.NODE)
    scene.claims.append(claim)
    try:
        result = yield
    finally:
        scene.claims.remove(claim)
    if result is None or wanted is None or wanted.allocator is None:
        return
    book = scene.book(wanted.allocator)
    node, label = layout.node(node_id), wanted.label
    said: dict[str, Any] = {"node": node, "label": label, "pool": book.pool}
    for transfer in _of_states(extra_pools or ()):
        slots = scene.ids.of(transfer.device_indices)
        if getattr(transfer, "nodes_to_load", None):
            scene.speech.say(Op.LOAD_BACK, slots, role=Role.NODE, depth=label, **said)
            scene.speech.say(Op.INSERT, slots, role=Role.NODE, **said)
            book.hold(slots, node, label)
        else:
            mine: dict[str, Any] = {"role": Role.LIVE, "request": wanted.request, "depth": label}
            scene.speech.say(Op.LOAD_BACK, slots, **mine, **said)


def _of_states(transfers: Iterable[Any]) -> Iterator[Any]:
    """Those that move recurrent states."""
    for transfer in transfers:
        if getattr(transfer.name, "name", None) == STATES and transfer.device_indices is not None:
            yield transfer
