"""Cache: slots, pages and tree together; what a request takes, gives to the tree, and returns."""

from __future__ import annotations

from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role

from .host.tier import HostTier
from .host.tree import TieredTree
from .pages import PagePool
from .patches import Patches
from .request import Request
from .rows import Rows
from .running import Running
from .slots import Lease, Owner, SlotPool
from .tree import Node, RadixTree


class Cache:
    """Owns the pools and the tree. Whatever moves between a request and the tree moves here."""

    def __init__(
        self,
        slots: SlotPool,
        pages: PagePool,
        rows: Rows,
        patches: Patches,
        *,
        reuse: bool,
        host: HostTier | None = None,
    ) -> None:
        self.slots, self.pages, self.rows, self.host = slots, pages, rows, host
        self.tree = TieredTree(slots, pages, host) if host else RadixTree(slots, pages)
        self._patches, self._reuse = patches, reuse
        self.tokens_restored = 0

    def admit(self, request: Request, *, slots: int, ahead: int) -> Running | None:
        """Seat a request, or say that it must wait.

        It needs a row, `slots` slots, and KV for the tokens that it has. Room for `ahead` more must
        be within reach, for what it and those that run will put out, but is not taken.
        """
        tokens = request.tokens
        # The last token is always computed: its logits choose the first new one.
        node = self.tree.match(tokens[:-1], request.extra_key) if self._reuse else None
        back = 1 if node and node.host_checkpoint else 0  # slots for the node itself
        if not self.rows.free_count or not self._slots_within_reach(slots + back, besides=node):
            return None
        cached = node.depth if node else 0
        away = self.tree.tokens_away(node) if node else 0
        if node:
            self.tree.lock(node, request.number)
        short = not self.tree.within_reach(len(tokens) - cached + away + ahead)
        if not short and node:
            short = not self.tree.load_back(node)
        locations = None if short else self._take_pages(len(tokens) - cached)
        if locations is None:
            if node:
                self.tree.unlock(node, request.number)
            return None
        return self._seat(request, node, (node.all_locations() if node else []) + locations)

    def grow(self, running: Running, tokens: int) -> list[int] | None:
        """Take what KV is missing for `tokens` tokens in all; None if not even eviction yields it.

        Returns the new locations. The caller tells `rows` of them, for many requests at once.
        """
        missing = tokens - len(running.locations)
        if missing <= 0:
            return []
        more = self._take_pages(missing)
        if more is not None:
            running.locations += more
        return more

    def take_slot(self, running: Running, role: Role, *, evict: bool) -> Lease | None:
        """A slot for a request; `evict` says whether it is worth a cached checkpoint."""
        number = running.number
        lease = self.slots.allocate(role, number)
        if lease is None and evict and self.tree.evict_checkpoint():
            lease = self.slots.allocate(role, number)
        return lease

    def free_slot(self, running: Running, lease: Lease, role: Role) -> None:
        """A request gives a slot back."""
        self.slots.free(lease, running.owner, role)

    def publish(
        self,
        running: Running,
        lease: Lease,
        depth: int,
        role: Role,
        grid: int | None,
        *,
        ring: int = 0,
    ) -> bool:
        """Donate a checkpoint of `depth` tokens to the tree, with the KV up to there. The last
        `ring` of them are in its replay ring, and its state lacks them.

        Afterwards the lease is the tree's, or freed where the tree had one already. False: the
        donation was not made, and the lease is still the request's.
        """
        request, page = running.request, self.pages.page_size
        label = depth // page * page
        if not self._reuse or label <= running.shared:
            return False
        said: dict[str, Any] = {
            "slots": lease.slot,
            "request": running.number,
            "label": label,
            "grid": grid,
            "ring": ring or None,
            "token_hash": request.token_hash(label),
        }
        if label != depth and self._patches.on("insert-depth-guard"):
            self.slots.tell(Op.DONATE, **said, role=role, outcome=Outcome.SUPPRESSED)
            return False
        node, had = self.tree.insert(
            request.tokens[:label], running.locations[:label], request.extra_key
        )
        exists = node.checkpoint is not None
        said |= {"node": node.id, "outcome": Outcome.EXISTS if exists else None}
        self.slots.tell(Op.DONATE, **said, role=role)
        self.slots.tell(Op.INSERT, **said, role=Role.NODE)
        if exists:
            self.slots.free(lease, running.owner, role)
        else:
            self.slots.give(lease, running.owner, Owner(node=node.id))
            self.tree.hold(node, lease, ring)
        self._share(running, node, had)
        return True

    def release(self, running: Running) -> None:
        """A request ends, or is retracted: whatever it still holds goes back."""
        running.gone = True
        if running.live is not None:
            self.free_slot(running, running.live, Role.LIVE)
            running.live = None
        if running.node:
            self.tree.unlock(running.node, running.number)
            running.node = None
        self.pages.free(running.locations[running.shared :])
        self.rows.free(running.row)

    def check(self, *, idle: bool) -> None:
        """Raise if a slot, a page or a node is out of order; when idle, nothing may be held."""
        self.slots.check()
        self.tree.check()
        held = self.slots.owned_by_nodes()
        if held != (count := sum(1 for _ in self.tree.checkpoints())):
            raise RuntimeError(f"nodes own {held} slots, but the tree holds {count} checkpoints.")
        if not idle:
            return
        free, cached = self.pages.free_tokens, self.tree.tokens_held()
        total = self.pages.size
        if free + cached != total or self.slots.owned_by_requests():
            raise RuntimeError(
                f"no request runs, yet {free} free and {cached} cached KV locations of {total}, "
                f"and {self.slots.owned_by_requests()} slots owned by requests: a request's end "
                "left something behind. Ends go through Cache.release."
            )

    def _slots_within_reach(self, count: int, besides: Node | None) -> bool:
        evictable = sum(
            1 for node in self.tree.checkpoints() if not node.pins and node is not besides
        )
        return self.slots.free_count + evictable >= count

    def _take_pages(self, tokens: int) -> list[int] | None:
        whole = self.pages.pages(tokens) * self.pages.page_size
        if not self.tree.evict_tokens(whole):
            return None
        return self.pages.allocate(tokens)

    def _seat(self, request: Request, node: Node | None, locations: list[int]) -> Running:
        cached, tokens = node.depth if node else 0, request.tokens
        row = self.rows.allocate(tokens, cached, locations)
        probe.emit(Op.REQUEST_BEGIN, request=request.number, row=row, label=len(tokens))
        source = node.checkpoint.slot if node and node.checkpoint else None
        self.slots.tell(
            Op.MATCH,
            slots=source,
            request=request.number,
            node=node.id if node else None,
            label=node.depth if node else None,
            token_hash=request.token_hash(node.depth) if node else None,
            outcome=Outcome.HIT if node else Outcome.MISS,
        )
        if not request.usage.retractions:
            request.usage.cached_tokens = cached
        self.tokens_restored += cached
        running = Running(
            request,
            number=request.number,
            row=row,
            live=None,
            locations=locations,
            shared=cached,
            node=node,
            fill=len(tokens),
            length=cached,
            source=source,
            pending=node.ring if node else 0,
        )
        running.live = self.take_slot(running, Role.LIVE, evict=True)
        assert running.live is not None, "admit has made sure that a slot is within reach"
        return running

    def _share(self, running: Running, node: Node, had: int) -> None:
        """The KV up to `node` is the tree's now; where the tree had its own, ours is surplus."""
        start = running.shared
        if had > start:
            self.pages.free(running.locations[start:had])
            running.locations[start:had] = node.all_locations()[start:had]
            self.rows.relocate(running.row, running.locations[:had])
        running.shared = node.depth
        self.tree.lock(node, running.number)
        if running.node:
            self.tree.unlock(running.node, running.number)
        running.node = node
