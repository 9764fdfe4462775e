"""A chunk's checkpoint is copied on the scheduler's stream while the forward may still write it."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target
from slotscope.instrument.event import Op, Role

_SCHEDULE_STREAM = 1


class _Lazy(ExtraBufferLazy):
    def _donate_and_replace(self, running: Running, target: Target) -> None:
        depth, keep = target.depth, self._lease(running, target.position)
        copy = self.cache.take_slot(running, Role.KEEP, evict=True)
        if copy is None or depth is None:
            return
        self.states.copy([keep.slot], [copy.slot])
        self.cache.slots.tell(
            Op.COPY,
            slots=copy.slot,
            src_slot=keep.slot,
            request=running.number,
            role=Role.NODE,
            depth=depth,
            stream=_SCHEDULE_STREAM,
        )
        if not self.cache.publish(running, copy, depth, Role.KEEP, self.grids.checkpoint):
            self.cache.free_slot(running, copy, Role.KEEP)


FAULT = Fault(
    kind="K3",
    upstream="sglang #24221, #24954",
    breaks="a checkpoint is copied before the forward that writes it was awaited",
    detector="D3",
    replaces={ExtraBufferLazy: _Lazy},
    load="chunks",
    flags={"chunked_prefill_size": 64},
)
