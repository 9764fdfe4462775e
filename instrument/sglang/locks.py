"""Locks: which nodes of the prefix tree are pinned and by whom, and edges that are cut in two."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op

from . import layout
from .scene import Scene


def request_served(scene: Scene, owner: Any, req: Any, *_: Any, **__: Any) -> Generator[None]:
    """SGLang is about one request until the call is over: what it locks, it locks for that one."""
    before, scene.serving = scene.serving, scene.requests.of(req).number
    try:
        yield
    finally:
        scene.serving = before


def request_released(scene: Scene, req: Any, *_: Any, **__: Any) -> Generator[None]:
    """The same for a function of the module."""
    return request_served(scene, None, req)


def node_locked(scene: Scene, result: Any, cache: Any, node_id: Any, *_: Any, **__: Any) -> None:
    """A path of the tree is pinned."""
    if not cache.disable:
        probe.emit(Op.LOCK, node=layout.node(node_id), request=scene.serving)


def node_unlocked(scene: Scene, result: Any, cache: Any, node_id: Any, *_: Any, **__: Any) -> None:
    """A path of the tree is no longer pinned, as far as one lock goes."""
    if not cache.disable:
        probe.emit(Op.UNLOCK, node=layout.node(node_id), request=scene.serving)


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
