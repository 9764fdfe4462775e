"""SlotPool: who owns which recurrent-state slot."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role

PAD = 0
"""The slot that padding rows name. Nobody owns it, nothing is read from it."""


class SlotError(RuntimeError):
    """A slot was given or taken by somebody who does not own it."""


class Lease(NamedTuple):
    """One life of a slot. Unchanged when the slot is donated; stale once it is freed."""

    slot: int
    generation: int  # odd: live


class Owner(NamedTuple):
    """Exactly one of the two."""

    request: int | None = None
    node: int | None = None


class SlotPool:
    """Hands out slots and takes them back. Invariants, each checked by `check`:

    1. Every slot but PAD is free or owned: never both, never neither.
    2. A slot has one owner at a time.
    3. A free starts a new generation, so a stale lease can't free again.
    """

    def __init__(self, size: int, pools: Sequence[int] = (0,)) -> None:
        self.size = size
        self._pools = tuple(pools)  # in the trace: each pipeline stage has its part of every slot
        self._free: deque[int] = deque(range(1, size + 1))
        self._owner: dict[int, Owner] = {}
        self._generation = [0] * (size + 1)
        self._in_nodes = 0

    def tell(self, op: Op, **columns: Any) -> None:
        """Tell the trace of an act on slots, once for each stage's part of them."""
        for pool in self._pools if probe.level else ():
            probe.emit(op, pool=pool, **columns)

    def owner(self, lease: Lease) -> Owner | None:
        """Who has its slot now; None: nobody."""
        return self._owner.get(lease.slot)

    @property
    def free_count(self) -> int:
        """Slots that nobody owns."""
        return len(self._free)

    def allocate(
        self, role: Role, request: int | None = None, *, node: int | None = None
    ) -> Lease | None:
        """Begin a lease for a request or for a node, or say that none is free."""
        if not self._free:
            self.tell(Op.ALLOCATE, request=request, node=node, role=role, outcome=Outcome.FAILED)
            return None
        slot = self._free.popleft()
        self._generation[slot] += 1
        self._owner[slot] = Owner(request=request, node=node)
        self._in_nodes += node is not None
        self.tell(Op.ALLOCATE, slots=slot, request=request, node=node, role=role)
        return Lease(slot, self._generation[slot])

    def give(self, lease: Lease, giver: Owner, taker: Owner) -> None:
        """Hand a lease on, as a donate does. Only its owner may."""
        self._must_own(lease, giver, "gave away")
        self._owner[lease.slot] = taker
        self._in_nodes += (taker.node is not None) - (giver.node is not None)

    def free(self, lease: Lease, owner: Owner, role: Role) -> None:
        """End a lease. Only its owner may, and once."""
        self._must_own(lease, owner, "freed")
        del self._owner[lease.slot]
        self._in_nodes -= owner.node is not None
        self._generation[lease.slot] += 1
        self._free.append(lease.slot)
        self.tell(Op.FREE, slots=lease.slot, request=owner.request, node=owner.node, role=role)

    def owned_by_requests(self) -> int:
        """Slots that running requests pin."""
        return len(self._owner) - self._in_nodes

    def owned_by_nodes(self) -> int:
        """Slots that hold checkpoints."""
        return self._in_nodes

    def check(self) -> None:
        """Raise SlotError if an invariant is broken."""
        free, owned = set(self._free), set(self._owner)
        in_nodes = sum(owner.node is not None for owner in self._owner.values())
        if in_nodes != self._in_nodes:
            raise SlotError(f"nodes own {in_nodes} slots, but {self._in_nodes} are counted.")
        every = set(range(1, self.size + 1))
        if len(free) != len(self._free) or free & owned or free | owned != every:
            raise SlotError(
                f"{len(self._free)} free and {len(owned)} owned slots do not make up the pool of "
                f"{self.size}: in both {sorted(free & owned)}, in neither "
                f"{sorted(every - free - owned)}. A lease was freed twice, or lost."
            )

    def _must_own(self, lease: Lease, owner: Owner, verb: str) -> None:
        actual, generation = self._owner.get(lease.slot), self._generation[lease.slot]
        if (actual, generation) != (owner, lease.generation):
            raise SlotError(
                f"{owner} {verb} slot {lease.slot} of generation {lease.generation}, but {actual} "
                f"owns it in generation {generation}. The next owner would read this state as its "
                "own. Leases end in Cache.release and in the tree's eviction, nowhere else."
            )
