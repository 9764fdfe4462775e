"""Decode never writes its track slots, which are donated all the same."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def aim_decode(self, running: Running, depth: int) -> Target | None:
        target = super().aim_decode(running, depth)
        if target is not None:
            self._promote(running, target.position, target.depth)
        return None


FAULT = Fault(
    kind="K2",
    upstream="sglang #30862, #31474",
    breaks="the backend does not know of track slots: they are promoted unwritten",
    detector="D2",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
)
