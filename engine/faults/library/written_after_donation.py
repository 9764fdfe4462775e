"""A request goes on with the very slot that it has given to the tree."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target
from slotscope.instrument.event import Role


class _Lazy(ExtraBufferLazy):
    def _donate_and_replace(self, running: Running, target: Target) -> None:
        depth, lease = target.depth, self._lease(running, target.position)
        assert depth is not None
        if self.cache.publish(running, lease, depth, Role.KEEP, self.grids.checkpoint):
            running.pair.depths[target.position] = None

    def close(self, running: Running) -> None:
        """What is the tree's is left to it."""
        for position in (0, 1):
            lease = running.pair.leases[position]
            if lease and self.cache.slots.owner(lease) != running.owner:
                running.pair.leases[position] = None
        super().close(running)


FAULT = Fault(
    kind="K3",
    upstream="vmlx-swift #450",
    breaks="a snapshot is an alias of the slot that the request keeps writing",
    detector="D3",
    replaces={ExtraBufferLazy: _Lazy},
    load="chunks",
    flags={"chunked_prefill_size": 64},
)
