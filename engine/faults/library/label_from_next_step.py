"""A checkpoint is filed under the length that the next step, launched already, will reach."""

from __future__ import annotations

from dataclasses import replace

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def decoded(self, running: Running, target: Target) -> None:
        super().decoded(running, replace(target, depth=running.length))


FAULT = Fault(
    kind="K1",
    upstream="sglang #29792",
    breaks="the label of a decode's checkpoint is the length that the next launch has advanced",
    detector="D1",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
)
