"""TieredTree: whatever moves between the tiers, each prefix keeps its own bytes."""

from __future__ import annotations

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from slotscope.engine.host.tier import HostTier, Pair
from slotscope.engine.host.tree import TieredTree
from slotscope.engine.memory import Memory, Shape
from slotscope.engine.pages import PagePool
from slotscope.engine.slots import Owner, SlotPool
from slotscope.engine.tree import Node
from slotscope.instrument.event import Role

PAGE, SLOTS, TOKENS = 2, 3, 16
HOST_SLOTS, HOST_TOKENS = 4, 20
SHAPE = Shape(1, 1, 1, 1, 1, 1, 1, 1, 1)
TEXTS = st.lists(st.sampled_from([(1, 1), (1, 2), (2, 2)]), min_size=1, max_size=5).map(
    lambda pages: tuple(token for page in pages for token in page)
)


class Tiers(RuleBasedStateMachine):
    """Publish, resume, evict at random. KV of a token is its prefix's hash, and so is a state."""

    def __init__(self) -> None:
        super().__init__()
        self.slots, self.pages = SlotPool(SLOTS), PagePool(TOKENS, PAGE)
        self.memory = Memory.allocate(
            SHAPE,
            tokens=TOKENS + PAGE,
            slots=SLOTS + 1,
            rows=0,
            draft_tokens=0,
            dtype=torch.float64,
            device=torch.device("cpu"),
        )
        pair = Pair.of(self.memory, slots=HOST_SLOTS + 1, tokens=HOST_TOKENS + PAGE)
        self.host = HostTier([pair], self.slots, HOST_SLOTS, PagePool(HOST_TOKENS, PAGE))
        self.tree = TieredTree(self.slots, self.pages, self.host)
        self.locked: list[Node] = []

    @rule(text=TEXTS)
    def publish(self, text: tuple[int, ...]) -> None:
        if not self.tree.evict_tokens(len(text)):
            return
        locations = self.pages.allocate(len(text))
        assert locations is not None
        lease = self.slots.allocate(Role.KEEP, 1)
        if lease is None and self.tree.evict_checkpoint():
            lease = self.slots.allocate(Role.KEEP, 1)
        if lease is None:
            self.pages.free(locations)
            return
        for at, where in enumerate(locations):
            self.memory.keys[:, :, where] = _mark(text[: at + 1])
        self.memory.conv[:, lease.slot] = self.memory.ssm[:, lease.slot] = _mark(text)
        node, had = self.tree.insert(text, locations)
        self.pages.free(locations[:had])
        if node.checkpoint is None:
            self.slots.give(lease, Owner(request=1), Owner(node=node.id))
            self.tree.hold(node, lease)
        else:
            self.slots.free(lease, Owner(request=1), Role.KEEP)
        assert self.tree.match(text) is node
        assert self.tree.tokens_away(node) == 0

    @rule(text=TEXTS)
    def resume(self, text: tuple[int, ...]) -> None:
        node = self.tree.match(text)
        if node is None:
            return
        self.tree.lock(node, 1)
        away = self.tree.tokens_away(node)
        room = self.tree.within_reach(away)
        if not self.tree.load_back(node):
            assert not room or all(each.pins for each in self.tree.checkpoints())
            self.tree.unlock(node, 1)
            return
        self.locked.append(node)
        text = text[: node.depth]
        for at, where in enumerate(node.all_locations()):
            assert float(self.memory.keys[0, 0, where]) == _mark(text[: at + 1])
        assert node.checkpoint is not None
        slot = node.checkpoint.slot
        assert float(self.memory.conv[0, slot]) == float(self.memory.ssm[0, slot]) == _mark(text)

    @precondition(lambda self: self.locked)
    @rule(data=st.data())
    def unlock(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.locked) - 1))
        self.tree.unlock(self.locked.pop(at), 1)

    @rule()
    def evict_checkpoint(self) -> None:
        free, could = self.slots.free_count, self.tree.evict_checkpoint()
        assert self.slots.free_count == free + could
        assert could or all(node.pins for node in self.tree.checkpoints())

    @rule(tokens=st.integers(1, TOKENS))
    def evict_tokens(self, tokens: int) -> None:
        assert self.tree.evict_tokens(tokens) == (self.pages.free_tokens >= tokens)

    @precondition(lambda self: not self.locked)
    @rule()
    def flush(self) -> None:
        self.tree.clear()
        assert self.slots.free_count == SLOTS
        assert self.host.slots.free_count == HOST_SLOTS
        assert self.host.tokens_held == 0

    @invariant()
    def adds_up(self) -> None:
        self.tree.check()
        self.slots.check()
        assert self.pages.free_tokens + self.tree.tokens_held() == TOKENS
        assert self.slots.owned_by_nodes() == sum(1 for _ in self.tree.checkpoints())

    @invariant()
    def what_is_locked_stays_on_the_device(self) -> None:
        for node in self.locked:
            assert node.checkpoint is not None
            assert self.tree.tokens_away(node) == 0


def _mark(text: tuple[int, ...]) -> float:
    """A number of its own for every text."""
    return float(int("".join(str(token) for token in text)))


Tiers.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestTiers = Tiers.TestCase
