"""The engine's parts without their own checks: what is wrong goes on, as it did upstream."""

from __future__ import annotations

from slotscope.engine.cache import Cache
from slotscope.engine.slots import Lease, Owner, SlotPool
from slotscope.engine.tree import Node, RadixTree
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Role


class UncheckedCache(Cache):
    """Finds nothing to complain of."""

    def check(self, *, idle: bool) -> None:
        """Nothing is checked."""


class UncheckedSlots(SlotPool):
    """Takes back what it is given, by whom and how often it may be."""

    def give(self, lease: Lease, giver: Owner, taker: Owner) -> None:
        """Hand a lease on, whoever has it."""
        self._owner[lease.slot] = taker
        self._in_nodes += (taker.node is not None) - (giver.node is not None)

    def free(self, lease: Lease, owner: Owner, role: Role) -> None:
        """End a lease, whoever has it, and once more if asked to."""
        self._owner.pop(lease.slot, None)
        self._in_nodes -= owner.node is not None
        self._generation[lease.slot] += 1
        self._free.append(lease.slot)
        self.tell(Op.FREE, slots=lease.slot, request=owner.request, node=owner.node, role=role)


class UncheckedTree(RadixTree):
    """Counts its locks below zero."""

    def unlock(self, node: Node, request: int) -> None:
        """Undo a lock, or one that was not there."""
        node.pins -= 1
        for each in node.path:
            each.locks -= 1
        probe.emit(Op.UNLOCK, node=node.id, request=request, label=node.depth)
