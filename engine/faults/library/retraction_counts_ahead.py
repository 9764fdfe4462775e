"""A retracted request leaves its checkpoint under the length that it had reached."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        pair = running.pair
        if not running.request.finished and pair.depths[pair.keep] is not None:
            pair.depths[pair.keep] = len(running.request.tokens)
        super().finish(running, target, crossed)


FAULT = Fault(
    kind="K8",
    upstream="sglang #38485",
    breaks="what is saved at a retraction lacks the inputs since, and counts them all the same",
    detector="D1",
    replaces={ExtraBufferLazy: _Lazy},
    load="ends",
)
