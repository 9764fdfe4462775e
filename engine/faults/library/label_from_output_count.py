"""At its end a request's checkpoint is filed under prompt + output - 1."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        pair = running.pair
        if pair.depths[pair.keep] is not None and target is None:
            pair.depths[pair.keep] = len(running.request.tokens) - 1
        super().finish(running, target, crossed)


FAULT = Fault(
    kind="K1",
    upstream="sglang #31369, reverted by #31622",
    breaks="the label of the last checkpoint is counted from the output, whatever was tracked",
    detector="D1",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
)
