"""A verify's crossing is never copied, while the bookkeeping advances."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running, Target


class _Lazy(ExtraBufferLazy):
    def aim_verify(self, running: Running) -> Target | None:
        super().aim_verify(running)  # takes the spare, which the forward is not told of
        return None

    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        spare = running.pair.leases[1 - running.pair.keep]
        if spare is not None and crossed is not None:
            self._promote(running, 1 - running.pair.keep, crossed)
        self._drop_idle_spare(running)


FAULT = Fault(
    kind="K2",
    upstream="sglang #37817, #37818",
    breaks="the mask of crossings is made of a length compared with itself, so nothing is copied",
    detector="D2",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
