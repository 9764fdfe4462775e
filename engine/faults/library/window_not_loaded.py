"""The convolution's window does not come back from the host with the rest."""

from __future__ import annotations

from collections.abc import Collection

from slotscope.engine.faults.fault import Fault
from slotscope.engine.host.tier import HostTier
from slotscope.instrument.event import Component, Op


class _Tier(HostTier):
    def _carried(self, op: Op) -> Collection[Component]:
        return (Component.SSM,) if op is Op.LOAD_BACK else super()._carried(op)


FAULT = Fault(
    kind="K8",
    upstream="sglang #38031, #39156",
    breaks="the load-back knows only what it was written for: a later buffer stays stale",
    detector="D8",
    replaces={HostTier: _Tier},
    load="crowds",
    flags={
        "enable_hierarchical_cache": True,
        "max_mamba_cache_size": 6,
        "max_running_requests": 2,
    },
)
