"""Each promotion keeps the checkpoint before it, until the request ends."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running
from slotscope.engine.slots import Lease
from slotscope.instrument.event import Role


class _Lazy(ExtraBufferLazy):
    _old: dict[Running, list[Lease]] = {}

    def _promote(self, running: Running, position: int, depth: int | None) -> None:
        running.pair.depths[position] = depth
        self._move_keep(running, position)
        self._old.setdefault(running, []).append(self._lease(running, 1 - position))
        running.pair.leases[1 - position] = running.pair.depths[1 - position] = None

    def close(self, running: Running) -> None:
        super().close(running)
        for lease in self._old.pop(running, []):
            self.cache.free_slot(running, lease, Role.KEEP)


FAULT = Fault(
    kind="K10",
    upstream="vllm #55450",
    breaks="states that nobody will need are kept until the request ends",
    detector="P2",
    replaces={ExtraBufferLazy: _Lazy},
    load="marathon",
)
