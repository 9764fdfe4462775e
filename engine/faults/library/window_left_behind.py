"""The convolution's window stays on the device when a checkpoint leaves for the host."""

from __future__ import annotations

from collections.abc import Collection

from slotscope.engine.faults.fault import Fault
from slotscope.engine.host.tier import HostTier
from slotscope.instrument.event import Component, Op


class _Tier(HostTier):
    def _carried(self, op: Op) -> Collection[Component]:
        return (Component.SSM,) if op is Op.OFFLOAD else super()._carried(op)


FAULT = Fault(
    kind="K8",
    upstream="sglang #39862",
    breaks="the host pool knows of the SSM state alone, and side states stay behind",
    detector="D8",
    replaces={HostTier: _Tier},
    load="crowds",
    flags={
        "enable_hierarchical_cache": True,
        "max_mamba_cache_size": 6,
        "max_running_requests": 2,
    },
)
