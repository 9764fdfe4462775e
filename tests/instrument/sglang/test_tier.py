"""The host tier: what leaves, what comes back, and into which slots."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from sglang_objects import NewReq, Rows, Told

from slotscope.instrument.sglang import tier
from slotscope.instrument.sglang.requests import Match
from slotscope.instrument.sglang.scene import Scene

NODE, LABEL = 7, 192
STATES = SimpleNamespace(name="MAMBA")


def around(adapter: Any, call: Callable[[], Any]) -> Any:
    """What a wrapped call of SGLang's does."""
    next(adapter)
    result = call()
    try:
        adapter.send(result)
    except StopIteration:
        return result
    raise AssertionError("An adapter yields once.")


def moved(slot: int, *, node: bool = False) -> SimpleNamespace:
    """A transfer of one recurrent state."""
    nodes = [NODE] if node else None
    return SimpleNamespace(name=STATES, device_indices=torch.tensor([slot]), nodes_to_load=nodes)


def test_a_checkpoint_leaves_under_the_label_that_it_is_filed_under(
    pool: Rows, scene: Scene, told: Told
) -> None:
    cache = SimpleNamespace(req_to_token_pool=pool)
    scene.book(pool.mamba_allocator).hold([3], NODE, LABEL)
    keys = SimpleNamespace(name=SimpleNamespace(name="KV"), device_indices=torch.tensor([90, 91]))
    transfers = {"mamba": [moved(3)], "full": [keys]}
    around(
        tier.checkpoint_offloaded(scene, cache, NODE, None, transfers, []), lambda: "on the host"
    )
    around(tier.checkpoint_offloaded(scene, cache, NODE, None, transfers, []), lambda: None)
    assert told("slot", "node", "label", "depth", "role", op="offload") == [
        {"slot": 3, "node": NODE, "label": LABEL, "depth": LABEL, "role": "node"}
    ]


def test_a_checkpoint_that_leaves_while_it_is_filed_has_the_label_already(
    pool: Rows, scene: Scene, told: Told
) -> None:
    cache = SimpleNamespace(req_to_token_pool=pool)
    scene.filing = LABEL
    leaving = tier.checkpoint_offloaded(scene, cache, NODE, None, {"mamba": [moved(3)]}, [])
    around(leaving, lambda: "on the host")
    assert told("slot", "label", op="offload") == [{"slot": 3, "label": LABEL}]


def test_a_checkpoint_comes_back_to_its_node_and_to_the_request(
    pool: Rows, scene: Scene, told: Told
) -> None:
    cache, req = SimpleNamespace(req_to_token_pool=pool), NewReq("a", [1] * 200)
    scene.requests.of(req).match = Match(None, NODE, LABEL)

    def load() -> Any:
        """The request's slot is taken first, the node's where the copies are queued."""
        pool.mamba_allocator.alloc(1)
        transfers = [moved(2, node=True), moved(1)]
        loading = tier.states_loaded(scene, None, None, node_id=NODE, extra_pools=transfers)
        return around(loading, lambda: pool.mamba_allocator.alloc(1))

    around(tier.checkpoint_wanted(scene, cache, NODE, req=req), load)
    said = ("op", "slot", "role", "request", "node", "label", "depth")
    assert [tuple(event.values()) for event in told(*said)] == [
        ("allocate", 1, "live", 1, None, None, None),
        ("allocate", 2, "node", None, None, None, None),
        ("load_back", 2, "node", None, NODE, LABEL, LABEL),
        ("insert", 2, "node", None, NODE, LABEL, None),
        ("load_back", 1, "live", 1, NODE, LABEL, LABEL),
    ]
    assert scene.claims == []


def test_a_load_that_is_called_off_moves_nothing(pool: Rows, scene: Scene, told: Told) -> None:
    cache, req = SimpleNamespace(req_to_token_pool=pool), NewReq("a", [1] * 200)

    def load() -> Any:
        taken = pool.mamba_allocator.alloc(1)
        loading = tier.states_loaded(scene, None, None, node_id=NODE, extra_pools=[moved(2)])
        around(loading, lambda: None)
        assert taken is not None
        pool.mamba_allocator.free(taken)
        return False

    around(tier.checkpoint_wanted(scene, cache, NODE, req=req), load)
    assert [event["op"] for event in told("op")] == ["allocate", "free"]
