"""A verify's checkpoint is filed one interval short."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        short = None if crossed is None else crossed - self.grids.track
        super().verified(running, target, short)


FAULT = Fault(
    kind="K1",
    upstream="atlas #155, #156",
    breaks="the token count behind a verify's checkpoint is short by one interval",
    detector="D1",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
