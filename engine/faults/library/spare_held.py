"""Each request takes a spare at its start and holds it to its end."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running
from slotscope.instrument.event import Role


class _Lazy(ExtraBufferLazy):
    def open(self, running: Running) -> None:
        super().open(running)
        position = 1 - running.pair.keep
        running.pair.leases[position] = self.cache.take_slot(running, Role.SPARE, evict=False)

    def _drop_idle_spare(self, running: Running) -> None:
        """It stays."""


FAULT = Fault(
    kind="K10",
    upstream="sglang #12432, #19002",
    breaks="every request holds a ping-pong slot for its whole life, which the plan did not count",
    detector="P3",
    replaces={ExtraBufferLazy: _Lazy},
    load="answers",
    flags={"speculative_algorithm": "NGRAM"},
)
