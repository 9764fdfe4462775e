"""A hit on the host brings keys and values back, and no recurrent state."""

from __future__ import annotations

from collections.abc import Collection

from slotscope.engine.faults.fault import Fault
from slotscope.engine.host.tier import HostTier
from slotscope.instrument.event import Component, Op


class _Tier(HostTier):
    def _carried(self, op: Op) -> Collection[Component]:
        return () if op is Op.LOAD_BACK else super()._carried(op)


FAULT = Fault(
    kind="K8",
    upstream="LMCache #4247, vllm #52627",
    breaks="a hit counts for all layers, and recurrent ones go on from what the slot held",
    detector="D2",
    replaces={HostTier: _Tier},
    load="crowds",
    flags={
        "enable_hierarchical_cache": True,
        "max_mamba_cache_size": 6,
        "max_running_requests": 2,
    },
)
