"""Slots: each life is told once, with who asked for it, whatever way SGLang takes to the slot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang_objects import FreeList, NewReq, OldReq, Rows, Told, wrapped

from slotscope.instrument.event import Op
from slotscope.instrument.sglang import ends, pools
from slotscope.instrument.sglang.hook import Hook, Watch, When
from slotscope.instrument.sglang.ids import Pending, known
from slotscope.instrument.sglang.scene import Scene

Req = NewReq | OldReq


def request(kind: str, name: str = "r") -> Req:
    prompt = [1, 2, 3]
    if kind == "new":
        return NewReq(name, prompt)
    return OldReq(rid=name, origin_input_ids=prompt)


def free_by_events(told: Told, size: int) -> set[int]:
    """A model of the pool that knows nothing but the events."""
    free = set(range(1, size + 1))
    for event in told("op", "slot"):
        if event["op"] == "allocate" and event["slot"] is not None:
            free.remove(event["slot"])
        elif event["op"] == "free":
            assert event["slot"] not in free
            free.add(event["slot"])
    return free


def asserted(pool: Rows, told: Told) -> None:
    """The model and SGLang's own free list agree."""
    assert free_by_events(told, 12) == set(pool.mamba_allocator.free_slots.tolist())


@pytest.mark.parametrize("kind", ["new", "old"])
def test_an_admitted_request_owns_its_slots(pool: Rows, told: Told, kind: str) -> None:
    first, second = request(kind, "a"), request(kind, "b")
    pool.alloc([first, second])
    assert told("slot", "request", "role", op="allocate") == [
        {"slot": 1, "request": 1, "role": "live"},
        {"slot": 2, "request": 1, "role": "keep"},
        {"slot": 3, "request": 2, "role": "live"},
        {"slot": 4, "request": 2, "role": "keep"},
    ]
    assert told("request", "row", "label", op="request.begin") == [
        {"request": 1, "row": 1, "label": 3},
        {"request": 2, "row": 2, "label": 3},
    ]
    asserted(pool, told)


@pytest.mark.parametrize("kind", ["new", "old"])
def test_the_next_chunk_of_a_request_takes_nothing(pool: Rows, told: Told, kind: str) -> None:
    req = request(kind)
    pool.alloc([req])
    before = len(told("op"))
    pool.alloc([req])
    assert len(told("op")) == before


def test_a_group_that_nobody_needs_is_no_event(pool: Rows, told: Told) -> None:
    pool.mamba_allocator.alloc_group_begin(4)
    pool.mamba_allocator.alloc_group_end()
    assert told("op") == []


def test_a_slot_of_a_group_begins_its_life_when_it_is_drawn(pool: Rows, told: Told) -> None:
    pool.mamba_allocator.alloc_group_begin(4)
    pool.alloc([NewReq("a", [1])])
    pool.mamba_allocator.alloc_group_end()
    assert told("slot", "role", op="allocate") == [
        {"slot": 1, "role": "live"},
        {"slot": 2, "role": "keep"},
    ]
    asserted(pool, told)


def test_a_spare_belongs_to_the_request_that_gets_it(pool: Rows, scene: Scene, told: Told) -> None:
    first, second = NewReq("a", [1]), NewReq("b", [1])
    pool.alloc([first, second])

    def prepare(batch: Any, interval: int) -> None:
        for req in batch:
            slot = pool.mamba_allocator.alloc(1)
            if slot is not None:
                pool.set_mamba_ping_pong_slot(req, 1, slot[0])

    row = Hook("x.prepare", When.AROUND, pools.spares_wanted, (), "spares")
    wrapped(prepare, Watch(scene, [row]).wrap(row), When.AROUND)([first, second], 64)
    assert told("slot", "request", "role", op="allocate")[4:] == [
        {"slot": 5, "request": 1, "role": "spare"},
        {"slot": 6, "request": 2, "role": "spare"},
    ]
    pool.mamba_allocator.alloc(6)
    wrapped(prepare, Watch(scene, [row]).wrap(row), When.AROUND)([first], 64)
    assert told("slot", "role", "outcome", op="allocate")[-1] == {
        "slot": None,
        "role": "spare",
        "outcome": "failed",
    }
    asserted(pool, told)


def test_what_a_free_takes_back_is_told_with_its_owner(pool: Rows, told: Told) -> None:
    pool.alloc([NewReq("a", [1])])
    pool.mamba_allocator.free(torch.tensor([2]))
    pool.mamba_allocator.free(torch.tensor([], dtype=torch.int64))
    assert told("slot", "request", "role", op="free") == [{"slot": 2, "request": 1, "role": "keep"}]
    asserted(pool, told)


def test_a_node_loses_its_checkpoint_before_its_slot_is_free(
    pool: Rows, scene: Scene, told: Told
) -> None:
    pool.alloc([NewReq("a", [1])])
    scene.book(pool.mamba_allocator).nodes[2] = (7, 64)
    pool.mamba_allocator.free(torch.tensor([2]))
    assert told("op", "slot", "node", "label", "role")[-2:] == [
        {"op": "evict", "slot": 2, "node": 7, "label": 64, "role": "node"},
        {"op": "free", "slot": 2, "node": None, "label": None, "role": "node"},
    ]


def test_a_flush_ends_every_life(pool: Rows, scene: Scene, told: Told) -> None:
    pool.alloc([NewReq("a", [1])])
    scene.book(pool.mamba_allocator).nodes[2] = (7, 64)
    pool.mamba_allocator.clear()
    assert told("op", "slot")[-3:] == [
        {"op": "evict", "slot": 2},
        {"op": "free", "slot": 1},
        {"op": "free", "slot": 2},
    ]
    asserted(pool, told)
    pool.mamba_allocator.clear()
    assert len(told("op", op="free")) == 2


def test_two_pools_are_two_numbers(pool: Rows, scene: Scene) -> None:
    assert scene.book(pool.mamba_allocator).pool == 0
    assert scene.book(FreeList(3)).pool == 1
    assert scene.book(pool.mamba_allocator) is scene.book(pool.mamba_allocator)


def test_the_turns_of_a_streaming_session_are_one_request(
    pool: Rows, scene: Scene, told: Told
) -> None:
    talk = SimpleNamespace(session_id="talk", streaming=True)
    first, second = NewReq("a", [1, 2], session=talk), NewReq("b", [3], session=talk)
    pool.alloc([first])
    ends.request_over(scene, first)  # The session keeps the row.
    second.kv = first.kv
    pool.alloc([second])
    assert scene.requests.of(second).number == 1
    assert told("op", op="request.end") == []
    ends.session_over(scene, None, "talk")
    assert told("request", "outcome", op="request.end") == [{"request": 1, "outcome": "finished"}]
    assert len(told("op", op="request.begin")) == 1


def test_an_aborted_turn_ends_the_session_s_row(pool: Rows, scene: Scene, told: Told) -> None:
    class FINISH_ABORT:
        pass

    req = NewReq("a", [1], session=SimpleNamespace(session_id="talk", streaming=True))
    pool.alloc([req])
    req.finished_reason = FINISH_ABORT()
    ends.request_over(scene, req)
    assert told("request", "outcome", op="request.end") == [{"request": 1, "outcome": "aborted"}]
    ends.session_over(scene, None, "talk")
    assert len(told("op", op="request.end")) == 1


def test_a_flush_tells_no_free_again_whose_number_is_still_under_way(
    scene: Scene, pool: Rows, told: Told
) -> None:
    class Copy:
        """A copy that is done once somebody waits for it."""

        done = False

        def query(self) -> bool:
            return self.done

        def synchronize(self) -> None:
            self.done = True

    free_list = pool.mamba_allocator
    (slot,) = free_list.alloc(1).tolist()
    pending = Pending()
    scene.ids._copies.append((Copy(), torch.tensor([slot]), [pending]))
    scene.speech.say(Op.FREE, [pending])
    book = scene.book(free_list)
    known(pending, lambda number: book.owners.pop(number, None))
    free_list.clear()
    assert len(told("op", op="free")) == 1
