"""The state at a chunk's end is filed as that of the boundary before it."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def aim_prefill(self, running: Running, start: int, end: int) -> Target | None:
        target = super().aim_prefill(running, start, end)
        return None if target is None else replace(target, depth=end)


FAULT = Fault(
    kind="K1",
    upstream="vllm #45477, #51113",
    breaks="a prefill tracks the state at the chunk's end, and labels it with the grid's depth",
    detector="D1",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
)
