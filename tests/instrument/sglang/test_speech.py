"""Slot numbers on a device: events are said at once, and completed when the numbers are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sglang_objects import Told

from slotscope.instrument import probe
from slotscope.instrument.event import Op
from slotscope.instrument.sglang.ids import Ids, Pending, known, plain
from slotscope.instrument.sglang.speech import Speech


class Copy:
    """Numbers on their way: what SGLang's device does in its own time, a test does in its."""

    def __init__(self, ids: Ids, *values: int) -> None:
        self.pending = [Pending() for _ in values]
        self._done = False
        ids._copies.append((self, torch.tensor(values), self.pending))

    def query(self) -> bool:
        return self._done

    def arrive(self) -> None:
        self._done = True


@pytest.fixture
def ids() -> Ids:
    return Ids()


def test_numbers_on_the_host_are_read_at_once(ids: Ids) -> None:
    assert ids.of(torch.tensor(7)) == [7]
    assert ids.of(torch.tensor([3, -1])) == [3, -1]


def test_an_event_is_completed_when_its_numbers_arrive(traced: Any, ids: Ids, told: Told) -> None:
    speech, copy = Speech(ids), Copy(ids, 5, 6)
    speech.say(Op.FREE, copy.pending)
    speech.settle()
    assert told("op", "slot") == [{"op": "free", "slot": None}] * 2
    copy.arrive()
    speech.settle()
    frees, amends = told("seq", op="free"), told("slot", "amends", op="amend")
    assert amends == [
        {"slot": 5, "amends": frees[0]["seq"]},
        {"slot": 6, "amends": frees[1]["seq"]},
    ]
    speech.settle()
    assert len(told("op")) == 4


def test_an_event_waits_for_both_of_its_slots(traced: Any, ids: Ids, told: Told) -> None:
    speech, first, second = Speech(ids), Copy(ids, 5), Copy(ids, 6)
    speech.say(Op.RESTORE, first.pending, second.pending, depth=64)
    first.arrive()
    speech.settle()
    assert told("op", op="amend") == []
    second.arrive()
    speech.settle()
    assert told("slot", "src_slot", op="amend") == [{"slot": 5, "src_slot": 6}]


def test_what_is_known_by_now_needs_no_amendment(traced: Any, ids: Ids, told: Told) -> None:
    speech, copy = Speech(ids), Copy(ids, 5)
    copy.arrive()
    speech.settle()
    speech.say(Op.FREE, copy.pending)
    assert told("op", "slot") == [{"op": "free", "slot": 5}]


def test_a_record_keeps_its_launch(traced: Any, ids: Ids, told: Told) -> None:
    launch = probe.emit(Op.FORWARD_LAUNCH, forward=1)
    Speech(ids).say(Op.ADVANCE, [3], depth=4, launch=launch)
    assert told("position", op="advance") == [{"position": launch}]


def test_what_waits_for_a_number_is_called_once(ids: Ids) -> None:
    seen: list[int] = []
    copy = Copy(ids, 5)
    known(copy.pending[0], seen.append)
    known(7, seen.append)
    known(None, seen.append)
    copy.arrive()
    ids.settle()
    ids.settle()
    assert seen == [7, 5]
    assert plain(copy.pending[0]) == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_numbers_on_a_gpu_arrive_without_a_wait() -> None:
    ids = Ids()
    buffer = torch.tensor([3, 9], device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = ids.of(buffer, changes=True)
        buffer.fill_(0)  # What overwrites the tensor later does not reach the copy.
        ids.flush()
        ids.settle()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    ids.settle()
    assert [plain(slot) for slot in found] == [3, 9]


def test_a_digest_on_its_way_completes_the_event(traced: Any, ids: Ids, told: Told) -> None:
    speech, copy = Speech(ids), Copy(ids, 2**62)
    speech.say(Op.DONATE, [5], digests=copy.pending, label=64)
    speech.settle()
    assert told("slot", "digest", op="donate") == [{"slot": 5, "digest": None}]
    copy.arrive()
    speech.settle()
    assert told("slot", "digest", op="amend") == [{"slot": 5, "digest": 2**62}]
