"""RadixTree: which KV and which checkpoint belong to a prefix.

An edge holds whole pages of tokens and their KV locations. A node may hold one checkpoint, the
state after exactly `depth` tokens; only such nodes can be resumed from, so each leaf has one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Role

from .pages import PagePool
from .slots import Lease, Owner, SlotPool


class TreeError(RuntimeError):
    """The tree's structure or its locks are broken."""


@dataclass(slots=True, eq=False)
class Node:
    """The end of an edge. `depth` counts the tokens from the root through this edge."""

    id: int
    parent: Node | None
    key: tuple[int, ...]
    locations: list[int]
    depth: int
    children: dict[tuple[int, ...], Node] = field(default_factory=dict)  # by first page
    checkpoint: Lease | None = None
    host_locations: list[int] = field(default_factory=list)  # of KV that is on the host instead
    ring: int = 0  # inputs that the checkpoint's state lacks: they are in its replay ring
    host_checkpoint: Lease | None = None  # a slot of the host tier, which has the state instead
    locks: int = 0  # requests that need the KV up to here
    pins: int = 0  # requests that resumed from, or published, this very node
    used: int = 0  # when it was last resumed from or filed

    @property
    def resumable(self) -> bool:
        """A state after its tokens is kept, on the device or on the host."""
        return self.checkpoint is not None or self.host_checkpoint is not None

    @property
    def path(self) -> Iterator[Node]:
        """This node and all above it, the root left out."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def all_locations(self) -> list[int]:
        """KV locations of all tokens from the root through this edge."""
        return [where for node in reversed(list(self.path)) for where in node.locations]


class RadixTree:
    """One tree for each namespace (`extra_key`), all over the same pages and slots."""

    def __init__(self, slots: SlotPool, pages: PagePool) -> None:
        self._slots, self._pages, self._page = slots, pages, pages.page_size
        self._ids, self._clock = count(1), count(1)
        self._roots: dict[str, Node] = {}
        # Least recently used first. Only the node that was resumed from is refreshed: refreshing
        # its ancestors would keep all states of a conversation together and evict others whole.
        self._holders: OrderedDict[int, Node] = OrderedDict()
        self._leaves: dict[int, Node] = {}

    def match(self, tokens: Sequence[int], extra_key: str = "") -> Node | None:
        """The deepest node along `tokens` that can be resumed from. Changes only what is recent."""
        best, node = None, self._roots.get(extra_key)
        depth = 0
        while node is not None:
            child = node.children.get(tuple(tokens[depth : depth + self._page]))
            if child is None or tuple(tokens[depth : child.depth]) != child.key:
                break
            node, depth = child, child.depth
            if node.resumable:
                best = node
        if best is not None:
            self._touch(best)
        return best

    def insert(
        self, tokens: Sequence[int], locations: Sequence[int], extra_key: str = ""
    ) -> tuple[Node, int]:
        """File KV under `tokens` (whole pages), splitting an edge where the two part.

        Returns the node at the end, and how many tokens the tree had already: for those it keeps
        its own locations, and the caller's are the caller's to free.
        """
        node = self._roots.setdefault(extra_key, Node(0, None, (), [], 0))
        while node.depth < len(tokens):
            child = node.children.get(tuple(tokens[node.depth : node.depth + self._page]))
            if child is None:
                return self._grow(node, tokens, locations), node.depth
            shared = self._shared(child, tokens)
            node = child if shared == len(child.key) else self._split(child, shared)
        return node, node.depth

    def hold(self, node: Node, lease: Lease, ring: int = 0) -> None:
        """Give a node its checkpoint, `ring` of whose inputs are in its replay ring. The pool must
        name the node as the owner already."""
        if node.checkpoint is not None:
            raise TreeError(f"node {node.id} holds slot {node.checkpoint.slot} already.")
        node.checkpoint, node.ring = lease, ring
        self._touch(node)

    def lock(self, node: Node, request: int) -> None:
        """Keep the path and the node's checkpoint from eviction until `unlock`."""
        node.pins += 1
        for each in node.path:
            each.locks += 1
        probe.emit(Op.LOCK, node=node.id, request=request, label=node.depth)

    def unlock(self, node: Node, request: int) -> None:
        """Undo one `lock` of this node."""
        if node.pins == 0:
            raise TreeError(f"request {request} unlocked node {node.id}, which nobody has locked.")
        node.pins -= 1
        for each in node.path:
            each.locks -= 1
        probe.emit(Op.UNLOCK, node=node.id, request=request, label=node.depth)

    def evict_checkpoint(self) -> bool:
        """Free the least recently used slot that no request needs, or say that there is none."""
        victim = next((node for node in self._holders.values() if not node.pins), None)
        if victim is None:
            return False
        self._evict_checkpoint(victim)
        return True

    def within_reach(self, tokens: int) -> bool:
        """Are so many locations free, or would be if all that may go were evicted?"""
        if self._pages.free_tokens >= tokens:
            return True
        # An unlocked node has only unlocked ones below it, so all of them can go.
        evictable = sum(len(node.locations) for node in self._nodes() if not node.locks)
        return self._pages.free_tokens + evictable >= tokens

    def evict_tokens(self, tokens: int) -> bool:
        """Free least recently used leaves until `tokens` locations are free; False if it fails."""
        if not self.within_reach(tokens):
            return False
        while self._pages.free_tokens < tokens:
            unlocked = (node for node in self._leaves.values() if not node.locks)
            self._evict_leaf(min(unlocked, key=lambda node: node.used))
        return True

    def tokens_away(self, node: Node) -> int:
        """Tokens on the path to a node whose KV must be loaded back before it is resumed from."""
        return sum(len(each.host_locations) for each in node.path)

    def load_back(self, node: Node) -> bool:
        """Have KV and state of a locked node on the device, where they always are without a host
        tier; False if there is no room for them."""
        return True

    def clear(self) -> None:
        """Evict everything. No request may hold a lock."""
        if any(node.locks for node in self._nodes()):
            raise TreeError("the cache was flushed while requests still lock parts of it.")
        for node in self._nodes():
            self._release(node)
        self._leaves.clear()
        self._roots.clear()

    def check(self) -> None:
        """Raise TreeError if a leaf has no checkpoint, or if a depth or a lock is wrong."""
        for node in self._nodes():
            parent = node.parent
            assert parent is not None
            wrong = (
                (not node.children and not node.resumable, "is a leaf without a checkpoint"),
                (node.depth != parent.depth + len(node.key), "has another depth than its key"),
                (
                    len(node.key) != len(node.locations) + len(node.host_locations),
                    "has keys without locations",
                ),
                (node.pins < 0, "was unlocked more often than locked"),
                (
                    node.locks != node.pins + sum(c.locks for c in node.children.values()),
                    "has other locks than its pins and its children make up",
                ),
            )
            for bad, what in wrong:
                if bad:
                    raise TreeError(f"node {node.id} of depth {node.depth} {what}.")

    def checkpoints(self) -> Iterator[Node]:
        """All nodes that hold a slot of the device."""
        return iter(self._holders.values())

    def tokens_held(self) -> int:
        """KV locations that belong to the tree."""
        return sum(len(node.locations) for node in self._nodes())

    def _nodes(self) -> Iterator[Node]:
        stack = [child for root in self._roots.values() for child in root.children.values()]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def _touch(self, node: Node) -> None:
        node.used = next(self._clock)
        if node.checkpoint is not None:
            self._holders[node.id] = node
            self._holders.move_to_end(node.id)

    def _shared(self, child: Node, tokens: Sequence[int]) -> int:
        """How many tokens of the child's edge agree with `tokens`, in whole pages."""
        assert child.parent is not None
        start, shared = child.parent.depth, 0
        for mine, asked in zip(child.key, tokens[start:], strict=False):
            if mine != asked:
                break
            shared += 1
        return shared // self._page * self._page

    def _grow(self, parent: Node, tokens: Sequence[int], locations: Sequence[int]) -> Node:
        key = tuple(tokens[parent.depth :])
        node = Node(next(self._ids), parent, key, list(locations[parent.depth :]), len(tokens))
        parent.children[key[: self._page]] = node
        self._leaves.pop(parent.id, None)
        self._leaves[node.id] = node
        return node

    def _split(self, child: Node, shared: int) -> Node:
        """Cut an edge in two. The checkpoint is a point: it stays with the lower node."""
        parent = child.parent
        assert parent is not None
        key, locations = child.key, child.locations
        upper = Node(
            next(self._ids), parent, key[:shared], locations[:shared], parent.depth + shared
        )
        upper.locks = child.locks
        parent.children[key[: self._page]] = upper
        child.parent, child.key, child.locations = upper, key[shared:], locations[shared:]
        upper.children[child.key[: self._page]] = child
        probe.emit(Op.SPLIT, node=upper.id, label=upper.depth)
        return upper

    def _drop_checkpoint(self, node: Node) -> None:
        lease = node.checkpoint
        assert lease is not None
        node.checkpoint = None
        del self._holders[node.id]
        self._slots.tell(Op.EVICT, slots=lease.slot, node=node.id, label=node.depth, role=Role.NODE)
        self._slots.free(lease, Owner(node=node.id), Role.NODE)

    def _evict_checkpoint(self, node: Node) -> None:
        if node.children:
            self._drop_checkpoint(node)
        else:
            self._remove(node)

    def _evict_leaf(self, leaf: Node) -> None:
        self._remove(leaf)

    def _remove(self, leaf: Node) -> None:
        """Take a leaf out, with what it holds, and whatever that leaves bare above it: a leaf that
        can't be resumed from is of no use to anybody."""
        while True:
            self._release(leaf)
            self._leaves.pop(leaf.id, None)
            parent = leaf.parent
            assert parent is not None
            del parent.children[leaf.key[: self._page]]
            if parent.parent is None:
                if not parent.children:
                    self._forget(parent)
                return
            self._settle(parent)
            if parent.children or parent.resumable or parent.locks:
                return
            leaf = parent

    def _release(self, node: Node) -> None:
        """Free its checkpoint and its pages."""
        if node.checkpoint is not None:
            self._drop_checkpoint(node)
        self._pages.free(node.locations)
        node.locations = []

    def _settle(self, node: Node) -> None:
        """Is it the last on its path that has KV on the device? Only such KV may be evicted."""
        self._leaves.pop(node.id, None)
        if node.locations and not any(child.locations for child in node.children.values()):
            self._leaves[node.id] = node

    def _forget(self, root: Node) -> None:
        """A namespace that holds nothing goes: clients name as many as they like."""
        del self._roots[next(name for name, each in self._roots.items() if each is root)]
