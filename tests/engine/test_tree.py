"""RadixTree: a dictionary of prefixes is the model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from slotscope.engine.pages import PagePool
from slotscope.engine.slots import Owner, SlotPool
from slotscope.engine.tree import Node, RadixTree, TreeError
from slotscope.instrument.event import Role

PAGE, SLOTS, TOKENS = 2, 6, 60
TEXTS = st.lists(st.sampled_from([(1, 1), (1, 2), (2, 2)]), min_size=1, max_size=5).map(
    lambda pages: tuple(token for page in pages for token in page)
)


class Trees(RuleBasedStateMachine):
    """Publish, match, lock, evict at random. The model: which prefix has which slot."""

    def __init__(self) -> None:
        super().__init__()
        self.slots, self.pages = SlotPool(SLOTS), PagePool(TOKENS, PAGE)
        self.tree = RadixTree(self.slots, self.pages)
        self.locked: list[Node] = []

    @rule(text=TEXTS)
    def publish(self, text: tuple[int, ...]) -> None:
        if self.slots.free_count == 0 or self.pages.free_tokens < len(text):
            return
        lease = self.slots.allocate(Role.KEEP, 1)
        locations = self.pages.allocate(len(text))
        assert lease is not None
        assert locations is not None
        node, had = self.tree.insert(text, locations)
        self.pages.free(locations[:had])
        assert node.depth == len(text)
        if node.checkpoint is None:
            self.slots.give(lease, Owner(request=1), Owner(node=node.id))
            self.tree.hold(node, lease)
        else:
            self.slots.free(lease, Owner(request=1), Role.KEEP)
        assert self.tree.match(text) is node

    @rule(text=TEXTS)
    def match(self, text: tuple[int, ...]) -> None:
        found = self.tree.match(text)
        best = max((d for d in self._depths(text)), default=0)
        assert (found.depth if found else 0) == best

    @rule(text=TEXTS)
    def lock(self, text: tuple[int, ...]) -> None:
        if node := self.tree.match(text):
            self.tree.lock(node, 1)
            self.locked.append(node)

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
        done = self.tree.evict_tokens(tokens)
        assert done == (self.pages.free_tokens >= tokens)

    @invariant()
    def adds_up(self) -> None:
        self.tree.check()
        self.slots.check()
        assert self.pages.free_tokens + self.tree.tokens_held() == TOKENS
        assert self.slots.owned_by_nodes() == sum(1 for _ in self.tree.checkpoints())

    @invariant()
    def what_is_locked_stays(self) -> None:
        for node in self.locked:
            assert node.checkpoint is not None
            assert self.tree.match(_text(node)) is node

    def _depths(self, text: tuple[int, ...]) -> Sequence[int]:
        texts = [_text(node) for node in self.tree.checkpoints()]
        return [len(each) for each in texts if text[: len(each)] == each]


def _text(node: Node) -> tuple[int, ...]:
    return tuple(token for each in reversed(list(node.path)) for token in each.key)


Trees.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestTrees = Trees.TestCase


def test_a_split_leaves_the_checkpoint_with_the_lower_node() -> None:
    slots, pages = SlotPool(4), PagePool(TOKENS, 1)
    tree = RadixTree(slots, pages)
    lower = _publish(tree, slots, pages, (1, 2, 3, 4))
    _publish(tree, slots, pages, (1, 2, 9))
    upper = lower.parent
    assert upper is not None
    assert (upper.depth, upper.checkpoint) == (2, None)
    assert tree.match((1, 2)) is None
    assert tree.match((1, 2, 3, 4, 5)) is lower


def test_flushing_what_is_locked_is_refused() -> None:
    slots, pages = SlotPool(4), PagePool(TOKENS, 1)
    tree = RadixTree(slots, pages)
    node = _publish(tree, slots, pages, (1, 2))
    tree.lock(node, 1)
    with pytest.raises(TreeError, match="flushed"):
        tree.clear()
    tree.unlock(node, 1)
    tree.clear()
    assert slots.free_count == 4
    assert pages.free_tokens == TOKENS


def test_an_unlock_too_many_is_refused() -> None:
    slots, pages = SlotPool(4), PagePool(TOKENS, 1)
    tree = RadixTree(slots, pages)
    node = _publish(tree, slots, pages, (1, 2))
    with pytest.raises(TreeError, match="nobody has locked"):
        tree.unlock(node, 1)


def test_a_namespace_is_forgotten_with_its_last_checkpoint() -> None:
    slots, pages = SlotPool(4), PagePool(TOKENS, 1)
    tree = RadixTree(slots, pages)
    kept = _publish(tree, slots, pages, (7, 8))
    tree.lock(kept, 1)
    for number in range(20):
        _publish(tree, slots, pages, (1, 2), extra_key=f"salt {number}")
        assert tree.match((1, 2), f"salt {number}") is not None
        assert tree.evict_checkpoint()
    assert len(tree._roots) == 1  # what no other call shows: clients' names would pile up
    assert tree.match((7, 8)) is kept


def _publish(
    tree: RadixTree, slots: SlotPool, pages: PagePool, text: tuple[int, ...], extra_key: str = ""
) -> Node:
    lease, locations = slots.allocate(Role.KEEP, 1), pages.allocate(len(text))
    assert lease is not None
    assert locations is not None
    node, had = tree.insert(text, locations, extra_key)
    pages.free(locations[:had])
    slots.give(lease, Owner(request=1), Owner(node=node.id))
    tree.hold(node, lease)
    return node
