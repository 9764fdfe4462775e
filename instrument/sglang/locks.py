"""Locks: which nodes of the prefix tree are pinned and by whom, and edges that are cut in two.

From 0.5.22 on a request's lock is an object, which tells whose it is when it is undone. Before, and
for locks that the tree takes for itself (a checkpoint under way to the host), nobody is named.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op

from . import layout
from .scene import Scene

OWNER = "slotscope_owner"
"""Attribute of SGLang's locks: the request that took it."""


def request_served(scene: Scene, owner: Any, req: Any, *_: Any, **__: Any) -> Generator[None]:
    """SGLang is about one request until the call is over: what it locks, it locks for that one.

    The locks of a streaming session outlive the request of the turn that takes them.
    """
    lasts = layout.session(req) is not None
    before, scene.serving = scene.serving, None if lasts else scene.requests.of(req).number
    try:
        yield
    finally:
        scene.serving = before


def lock_taken(scene: Scene, cache: Any, *_: Any, **__: Any) -> Generator[None, Any, None]:
    """A lock of a request's is made; the node that it pins is told meanwhile."""
    scene.locking = scene.serving
    try:
        lock = yield
    finally:
        scene.locking = None
    if lock is not None:
        setattr(lock, OWNER, scene.serving)


def lock_undone(scene: Scene, cache: Any, lock: Any) -> Generator[None]:
    """... is given back."""
    scene.locking = getattr(lock, OWNER, None)
    try:
        yield
    finally:
        scene.locking = None


def node_locked(scene: Scene, result: Any, cache: Any, node_id: Any, *_: Any, **__: Any) -> None:
    """A path of the tree is pinned."""
    if not cache.disable:
        probe.emit(Op.LOCK, node=layout.node(node_id), request=scene.locking)


def node_unlocked(scene: Scene, result: Any, cache: Any, node_id: Any, *_: Any, **__: Any) -> None:
    """A path of the tree is no longer pinned, as far as one lock goes."""
    if not cache.disable:
        probe.emit(Op.UNLOCK, node=layout.node(node_id), request=scene.locking)


def edge_split(scene: Scene, result: Any, *_: Any, **__: Any) -> None:
    """An edge is cut in two, in the core of the tree that is written in Python."""
    parent = result[0] if isinstance(result, tuple) else result
    depth, above = 0, parent
    while above is not None:
        depth += len(above.key) if above.key is not None else 0
        above = above.parent
    probe.emit(Op.SPLIT, node=layout.node(parent), label=depth)


def unseen(scene: Scene, cache: Any) -> None:
    """Say what this server's tree does out of sight. Called once, when a forward is launched."""
    core = getattr(cache, "tree_core", None)
    if core is not None and "rust" in type(core).__module__:
        scene.blind((Op.SPLIT,), "the prefix tree's core is Rust, which cuts edges by itself")
    if getattr(cache, "linker", None) is not None or getattr(cache, "buffer_pipeline", None):
        why = "checkpoints leave and come back by a linker or through host buffers, unwatched"
        scene.blind((Op.OFFLOAD, Op.LOAD_BACK), why)
