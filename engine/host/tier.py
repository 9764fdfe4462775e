"""HostTier: slots and KV pages in the host's memory, and the moves there and back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.memory import Memory
from slotscope.engine.pages import PagePool
from slotscope.engine.slots import Lease, Owner, SlotPool
from slotscope.engine.tree import Node
from slotscope.instrument.event import Component, Op, Role


@dataclass(frozen=True, slots=True)
class Pair:
    """The memory of a stage, or of a drafter that keeps KV of its own, and its other half.

    They have equal layers and ranks; the counts of slots and of locations differ.
    """

    device: Memory
    host: Memory

    @property
    def has_states(self) -> bool:
        """Not a drafter's."""
        return bool(self.device.ssm.shape[1])

    @staticmethod
    def of(device: Memory, *, slots: int, tokens: int) -> Pair:
        """Take host memory for so many slots and locations of a rank, those of padding included."""

        def kv(tensor: Tensor) -> Tensor:
            layers, ranks, _, *rest = tensor.shape
            return torch.zeros(layers, ranks, tokens, *rest, dtype=tensor.dtype)

        def states(tensor: Tensor) -> Tensor:
            layers, count, *rest = tensor.shape
            return torch.zeros(layers, slots if count else 0, *rest, dtype=tensor.dtype)

        none = torch.zeros(0)
        host = Memory(
            keys=kv(device.keys),
            values=kv(device.values),
            conv=states(device.conv),
            ssm=states(device.ssm),
            conv_steps=none,
            ssm_steps=none,
            ring=states(device.ring),
        )
        return Pair(device, host)


class HostTier:
    """What is here is nowhere else: a state or a page is moved, not mirrored.

    A move is queued on the stream of the forwards, behind all that were launched. So it reads what
    they leave, and they have read what it overwrites.
    """

    def __init__(
        self, pairs: Sequence[Pair], device: SlotPool, slots: int, pages: PagePool
    ) -> None:
        self._pairs, self._device = tuple(pairs), device
        # Leases of host slots are not told: in the trace a slot is one that a forward can name.
        self.slots, self.pages = SlotPool(slots, pools=()), pages
        self.offloads = 0
        self.load_backs = 0

    def offload(self, lease: Lease, node: Node) -> Lease:
        """Copy a node's state out of its slot; there must be a free one here."""
        mine = self.slots.allocate(Role.NODE, node=node.id)
        assert mine is not None, "the tree has made room"
        self._carry(Op.OFFLOAD, lease, mine, node)
        self.offloads += 1
        return mine

    def load_back(self, mine: Lease, lease: Lease, node: Node) -> None:
        """Move a node's state into a slot of the device that is the node's."""
        self._carry(Op.LOAD_BACK, lease, mine, node)
        self.load_backs += 1
        self.forget(mine, node.id)

    def forget(self, mine: Lease, node: int) -> None:
        """A node's state is not kept here any longer."""
        self.slots.free(mine, Owner(node=node), Role.NODE)

    def offload_kv(self, locations: Sequence[int]) -> list[int]:
        """Copy KV out of these locations, whole pages; there must be as many free here."""
        mine = self.pages.allocate(len(locations))
        assert mine is not None, "the tree has made room"
        for pair in self._pairs:
            _copy_kv(pair.device, locations, pair.host, mine)
        return mine

    def load_back_kv(self, mine: Sequence[int], locations: Sequence[int]) -> None:
        """Move KV into locations of the device."""
        for pair in self._pairs:
            _copy_kv(pair.host, mine, pair.device, locations)
        self.pages.free(mine)

    @property
    def tokens_held(self) -> int:
        """KV locations that nodes have here."""
        return self.pages.size - self.pages.free_tokens

    def _carried(self, op: Op) -> Collection[Component]:
        """What a move of a state takes along: all that a state is made of, either way."""
        return self._pairs[0].device.components.keys()

    def _carry(self, op: Op, lease: Lease, mine: Lease, node: Node) -> None:
        """Copy a state between the device's slot and the one here, component by component. Each
        is told by itself: that is the manifest, which the way back must match."""
        for component in self._carried(op):
            for pair in self._pairs:
                if pair.has_states:
                    there = pair.device.components[component][:, lease.slot]
                    here = pair.host.components[component][:, mine.slot]
                    source, target = (there, here) if op is Op.OFFLOAD else (here, there)
                    target.copy_(source)
            self._device.tell(
                op,
                slots=lease.slot,
                node=node.id,
                label=node.depth,
                depth=node.depth - node.ring,
                ring=node.ring or None,
                role=Role.NODE,
                component=component,
            )


def _copy_kv(
    source: Memory, from_locations: Sequence[int], target: Memory, to_locations: Sequence[int]
) -> None:
    """Keys and values of all attention layers."""
    read = torch.tensor(from_locations, device=source.keys.device)
    source.send(read, target, torch.tensor(to_locations, device=target.keys.device))
