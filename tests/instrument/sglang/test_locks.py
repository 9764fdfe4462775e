"""Locks: who pins which node, and where an edge was cut."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sglang_objects import NewReq, Told

from slotscope.instrument.sglang import locks
from slotscope.instrument.sglang.scene import Scene

ON, OFF = SimpleNamespace(disable=False), SimpleNamespace(disable=True)


def made(adapter: Any, call: Callable[[], Any]) -> Any:
    """What a wrapped call of SGLang's does."""
    next(adapter)
    result = call()
    with pytest.raises(StopIteration):
        adapter.send(result)
    return result


def locked(scene: Scene, node: int) -> Any:
    """SGLang locks a node, by an object that undoes it."""

    def lock() -> Any:
        locks.node_locked(scene, None, ON, node)
        return SimpleNamespace(node=node)

    return made(locks.lock_taken(scene, ON, node), lock)


def undone(scene: Scene, lock: Any) -> None:
    made(
        locks.lock_undone(scene, ON, lock), lambda: locks.node_unlocked(scene, None, ON, lock.node)
    )


def test_a_lock_is_undone_by_whom_it_was_taken(traced: object, told: Told) -> None:
    scene, taken = Scene(), []

    def admit() -> None:
        taken.append(locked(scene, 5))
        locks.node_locked(scene, None, ON, 6)  # the tree's own, while it serves the request

    made(locks.request_served(scene, None, NewReq("a", [1])), admit)
    locks.node_unlocked(scene, None, ON, 6)
    undone(scene, taken[0])
    assert told("op", "node", "request") == [
        {"op": "lock", "node": 5, "request": 1},
        {"op": "lock", "node": 6, "request": None},
        {"op": "unlock", "node": 6, "request": None},
        {"op": "unlock", "node": 5, "request": 1},
    ]


def test_the_lock_of_a_streaming_session_is_no_request_s(traced: object, told: Told) -> None:
    scene, req = Scene(), NewReq("a", [1])
    req.session = SimpleNamespace(streaming=True, session_id="talk")
    made(locks.request_served(scene, None, req), lambda: locked(scene, 5))
    assert told("node", "request", op="lock") == [{"node": 5, "request": None}]


def test_a_tree_that_is_switched_off_locks_nothing(traced: object, told: Told) -> None:
    locks.node_locked(Scene(), None, OFF, 4)
    assert told("op") == []


def test_a_cut_is_told_with_the_depth_of_the_new_parent(traced: object, told: Told) -> None:
    root = SimpleNamespace(id=0, key=None, parent=None)
    above = SimpleNamespace(id=1, key=range(64), parent=root)
    new = SimpleNamespace(id=9, key=range(128), parent=above)
    locks.edge_split(Scene(), (new, None))
    assert told("node", "label", op="split") == [{"node": 9, "label": 192}]


class RustCore:
    """By its module's name, as SGLang's."""

    __module__ = "sglang.srt.mem_cache.rust_tree_core.adapter"


def test_what_a_tree_does_out_of_sight_is_said() -> None:
    scene, said = Scene(), {}
    scene.blind = lambda ops, why: said.update({op.name: why for op in ops})
    locks.unseen(scene, SimpleNamespace(tree_core=object()))
    assert said == {}
    locks.unseen(scene, SimpleNamespace(tree_core=RustCore(), linker=object()))
    assert set(said) == {"SPLIT", "OFFLOAD", "LOAD_BACK"}
