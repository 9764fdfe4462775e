"""SlotPool and PagePool: who owns what, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from slotscope.engine.pages import PageError, PagePool
from slotscope.engine.slots import PAD, Lease, Owner, SlotError, SlotPool
from slotscope.instrument.event import Role

ANN, BEN, NODE = Owner(request=1), Owner(request=2), Owner(node=7)


def test_a_slot_is_freed_once() -> None:
    pool = SlotPool(2)
    lease = pool.allocate(Role.LIVE, 1)
    assert lease is not None
    pool.free(lease, ANN, Role.LIVE)
    with pytest.raises(SlotError, match="slot 1 of generation 1"):
        pool.free(lease, ANN, Role.LIVE)


def test_a_stale_lease_frees_nothing() -> None:
    pool = SlotPool(1)
    first = pool.allocate(Role.LIVE, 1)
    assert first is not None
    pool.free(first, ANN, Role.LIVE)
    second = pool.allocate(Role.LIVE, 1)
    assert second is not None
    assert second.slot == first.slot
    with pytest.raises(SlotError, match="generation 3"):
        pool.free(first, ANN, Role.LIVE)


def test_only_the_owner_gives_and_frees() -> None:
    pool = SlotPool(1)
    lease = pool.allocate(Role.KEEP, 1)
    assert lease is not None
    with pytest.raises(SlotError):
        pool.give(lease, BEN, NODE)
    pool.give(lease, ANN, NODE)
    with pytest.raises(SlotError):
        pool.free(lease, ANN, Role.KEEP)
    pool.free(lease, NODE, Role.NODE)
    pool.check()


class Slots(RuleBasedStateMachine):
    """Random moves; a dictionary is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = SlotPool(5)
        self.owned: dict[Lease, Owner] = {}

    @rule(request=st.integers(1, 3))
    def allocate(self, request: int) -> None:
        lease = self.pool.allocate(Role.LIVE, request)
        assert (lease is None) == (len(self.owned) == 5)
        if lease is not None:
            assert lease not in self.owned
            assert lease.slot != PAD
            self.owned[lease] = Owner(request=request)

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), node=st.integers(1, 3))
    def donate(self, data: st.DataObject, node: int) -> None:
        lease = data.draw(st.sampled_from(sorted(self.owned)))
        self.pool.give(lease, self.owned[lease], Owner(node=node))
        self.owned[lease] = Owner(node=node)

    @precondition(lambda self: self.owned)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(sorted(self.owned)))
        self.pool.free(lease, self.owned.pop(lease), Role.LIVE)

    @invariant()
    def adds_up(self) -> None:
        self.pool.check()
        assert self.pool.free_count == 5 - len(self.owned)
        assert self.pool.owned_by_nodes() == sum(o.node is not None for o in self.owned.values())


Slots.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSlots = Slots.TestCase


@pytest.mark.parametrize("page", [1, 4])
def test_pages_come_whole_and_return(page: int) -> None:
    pool = PagePool(12, page)
    taken = pool.allocate(5)
    assert taken is not None
    assert len(taken) == -(-5 // page) * page
    assert min(taken) >= page, "page 0 takes the writes of padding"
    assert pool.allocate(12) is None
    pool.free(taken)
    assert pool.free_tokens == 12
    with pytest.raises(PageError):
        pool.free(taken)
