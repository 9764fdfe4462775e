"""A checkpoint leaves for the host without the inputs that its state lacks."""

from __future__ import annotations

from collections.abc import Collection

from slotscope.engine.faults.fault import Fault
from slotscope.engine.host.tier import HostTier
from slotscope.instrument.event import Component, Op


class _Tier(HostTier):
    def _carried(self, op: Op) -> Collection[Component]:
        if op is Op.OFFLOAD:
            return (Component.CONV, Component.SSM)
        return super()._carried(op)


FAULT = Fault(
    kind="K8",
    upstream="sglang #38485",
    breaks="the copy on the host has the state, and not the inputs in its replay ring",
    detector="D8",
    replaces={HostTier: _Tier},
    load="branches",
    flags={
        "enable_hierarchical_cache": True,
        "enable_linear_replayssm": True,
        "mamba_radix_cache_strategy": "no_buffer",
        "disable_overlap_schedule": True,
        "chunked_prefill_size": 64,
        "max_mamba_cache_size": 3,
    },
)
