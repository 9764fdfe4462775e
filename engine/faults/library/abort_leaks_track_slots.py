"""An aborted request's track slots are never freed."""

from __future__ import annotations

from slotscope.engine.checkpoints.lazy import ExtraBufferLazy
from slotscope.engine.faults.fault import Fault
from slotscope.engine.running import Running


class _Lazy(ExtraBufferLazy):
    def close(self, running: Running) -> None:
        if running.request.finish_reason != "abort":
            super().close(running)


FAULT = Fault(
    kind="K10",
    upstream="sglang #23496",
    breaks="the close of a session frees the live slot, and leaves the ping-pong slots",
    detector="D10",
    replaces={ExtraBufferLazy: _Lazy},
    load="ends",
)
