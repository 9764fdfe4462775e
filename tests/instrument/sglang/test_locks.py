"""Locks: who pins which node, and where an edge was cut."""

from __future__ import annotations

from types import SimpleNamespace

from sglang_objects import NewReq, Told

from slotscope.instrument.sglang import locks
from slotscope.instrument.sglang.scene import Scene

ON, OFF = SimpleNamespace(disable=False), SimpleNamespace(disable=True)


def test_a_lock_is_the_request_s_that_sglang_is_about(traced: object, told: Told) -> None:
    scene = Scene()
    serving = locks.request_served(scene, None, NewReq("a", [1]))
    locks.node_locked(scene, None, ON, 4)
    next(serving)
    locks.node_locked(scene, None, ON, 5)
    locks.node_unlocked(scene, None, ON, 4)
    assert next(serving, None) is None
    locks.node_unlocked(scene, None, ON, 5)
    assert told("op", "node", "request") == [
        {"op": "lock", "node": 4, "request": None},
        {"op": "lock", "node": 5, "request": 1},
        {"op": "unlock", "node": 4, "request": 1},
        {"op": "unlock", "node": 5, "request": None},
    ]


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
