"""TieredTree: a radix tree whose nodes may have their KV and their states on the host."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from slotscope.engine.pages import PagePool
from slotscope.engine.slots import Lease, SlotPool
from slotscope.engine.tree import Node, RadixTree, TreeError
from slotscope.instrument.event import Op, Role

from .tier import HostTier


class TieredTree(RadixTree):
    """Invariants beside those of the plain tree, each checked by `check`:

    1. KV of a node is on the device or on the host; below a node whose KV is on the host, all is.
    2. A state is on the device or on the host; on the device only above its KV.
    3. What nodes have on the host is what the host tier has given out.
    """

    def __init__(self, slots: SlotPool, pages: PagePool, host: HostTier) -> None:
        super().__init__(slots, pages)
        self._host = host
        self._away: OrderedDict[int, Node] = OrderedDict()  # states on the host, least used first

    def insert(
        self, tokens: Sequence[int], locations: Sequence[int], extra_key: str = ""
    ) -> tuple[Node, int]:
        """As in the plain tree. KV that it had on the host alone it takes over from the caller, who
        has just computed the same: only what was on the device counts as the tree's own."""
        node, had = super().insert(tokens, locations, extra_key)
        for each in reversed(list(node.path)):
            assert each.parent is not None
            if each.host_locations:
                had = min(had, each.parent.depth)
                self._host.pages.free(each.host_locations)
                each.host_locations = []
                each.locations = list(locations[each.parent.depth : each.depth])
                self._settle(each.parent)
                self._settle(each)
        return node, had

    def hold(self, node: Node, lease: Lease, ring: int = 0) -> None:
        """As in the plain tree. A state of the node on the host, which is the same, goes."""
        if node.host_checkpoint is not None:
            self._forget_away(node)
        super().hold(node, lease, ring)

    def load_back(self, node: Node) -> bool:
        """Bring KV and state of a locked node to the device; False if there is no room for them."""
        away = [each for each in reversed(list(node.path)) if each.host_locations]
        if not self.evict_tokens(sum(len(each.host_locations) for each in away)):
            return False
        for each in away:
            locations = self._pages.allocate(len(each.host_locations))
            assert locations is not None, "they have just been freed"
            self._host.load_back_kv(each.host_locations, locations)
            each.locations, each.host_locations = locations, []
            assert each.parent is not None
            self._settle(each.parent)
            self._settle(each)
        return node.host_checkpoint is None or self._load_back_state(node, node.host_checkpoint)

    def check(self) -> None:
        """Raise TreeError or SlotError if an invariant of the tree or of the host is broken."""
        super().check()
        self._host.slots.check()
        for node in self._nodes():
            parent = node.parent
            assert parent is not None
            wrong = (
                (bool(node.locations and parent.host_locations), "has KV below KV on the host"),
                (bool(node.checkpoint and node.host_checkpoint), "has a state on both tiers"),
                (bool(node.checkpoint and not node.locations), "has a state without KV"),
            )
            for bad, what in wrong:
                if bad:
                    raise TreeError(f"node {node.id} of depth {node.depth} {what}.")
        self._check_host()

    def _check_host(self) -> None:
        slots = self._host.slots
        held = sum(len(node.host_locations) for node in self._nodes())
        if self._host.tokens_held != held or slots.owned_by_nodes() != len(self._away):
            raise TreeError(
                f"the host tier holds {self._host.tokens_held} KV locations and "
                f"{slots.owned_by_nodes()} states, but nodes have {held} and {len(self._away)}. "
                "Moves go through TieredTree, ends through its _release."
            )

    def _load_back_state(self, node: Node, mine: Lease) -> bool:
        lease = self._slots.allocate(Role.NODE, node=node.id)
        if lease is None and self.evict_checkpoint():
            lease = self._slots.allocate(Role.NODE, node=node.id)
        if lease is None:
            return False
        self._host.load_back(mine, lease, node)
        self._slots.tell(
            Op.INSERT,
            slots=lease.slot,
            node=node.id,
            label=node.depth,
            ring=node.ring or None,
            role=Role.NODE,
        )
        node.host_checkpoint = None
        del self._away[node.id]
        super().hold(node, lease, node.ring)
        return True

    def _touch(self, node: Node) -> None:
        super()._touch(node)
        if node.host_checkpoint is not None:
            self._away.move_to_end(node.id)

    def _split(self, child: Node, shared: int) -> Node:
        upper = super()._split(child, shared)
        kept = child.host_locations
        upper.host_locations, child.host_locations = kept[:shared], kept[shared:]
        return upper

    def _evict_checkpoint(self, node: Node) -> None:
        """The state leaves alone: its KV stays until KV is short."""
        if self._make_room(0, 1):
            self._offload_state(node)
        else:
            super()._evict_checkpoint(node)

    def _evict_leaf(self, leaf: Node) -> None:
        """KV leaves for the host, and the state with it, since it is of no use alone."""
        if self._offload(leaf):
            return
        for each in list(self._below(leaf)):
            self._release(each)
        leaf.children.clear()
        super()._evict_leaf(leaf)

    def _offload(self, leaf: Node) -> bool:
        """True once the leaf's KV is off the device; False if the host has no room for it."""
        fits = self._make_room(len(leaf.locations), int(leaf.checkpoint is not None))
        if not leaf.locations:
            return True  # It was kept for what it had below it, and went with the last of that.
        if not fits:
            return False
        if leaf.checkpoint is not None:
            self._offload_state(leaf)
        leaf.host_locations = self._host.offload_kv(leaf.locations)
        self._pages.free(leaf.locations)
        leaf.locations = []
        assert leaf.parent is not None
        self._settle(leaf)
        self._settle(leaf.parent)
        return True

    def _offload_state(self, node: Node) -> None:
        assert node.checkpoint is not None
        node.host_checkpoint = self._host.offload(node.checkpoint, node)
        self._away[node.id] = node
        self._drop_checkpoint(node)

    def _make_room(self, tokens: int, slots: int) -> bool:
        """Let the least recently used go from the host until so much is free there."""
        host = self._host
        if tokens > host.pages.size or slots > host.slots.size:
            return False
        while (short := host.pages.free_tokens < tokens) or host.slots.free_count < slots:
            victim = next((each for each in self._away.values() if _may_go(each, kv=short)), None)
            if victim is None:
                return False
            if victim.children:
                self._drop_away(victim)
            else:
                self._remove(victim)
        return True

    def _release(self, node: Node) -> None:
        super()._release(node)
        if node.host_checkpoint is not None:
            self._drop_away(node)
        self._host.pages.free(node.host_locations)
        node.host_locations = []

    def _drop_away(self, node: Node) -> None:
        """The node loses its state, which no slot of the device has."""
        self._slots.tell(Op.EVICT, node=node.id, label=node.depth, role=Role.NODE)
        self._forget_away(node)

    def _forget_away(self, node: Node) -> None:
        assert node.host_checkpoint is not None
        self._host.forget(node.host_checkpoint, node.id)
        node.host_checkpoint = None
        del self._away[node.id]

    def _below(self, node: Node) -> Iterator[Node]:
        for child in node.children.values():
            yield child
            yield from self._below(child)


def _may_go(node: Node, *, kv: bool) -> bool:
    """May its state leave the host? Where KV is short, only a leaf helps, whose KV goes too."""
    return not node.pins and (not kv or bool(node.host_locations and not node.children))
