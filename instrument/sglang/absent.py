"""Absent: operations that a server, as it is set up, has no act for.

They are told in full by being told never: a detector that needs one is not blind for it.
"""

from __future__ import annotations

from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Op

_HOST_TIER = (Op.OFFLOAD, Op.LOAD_BACK)
_TRANSFER = (Op.TRANSFER_SEND, Op.TRANSFER_RECEIVE)
_RELAY = (Op.RELAY_SEND, Op.RELAY_RECEIVE)


def tell(server_args: Any) -> None:
    """Say so of the host tier, of transfers between hosts, and of pipeline stages."""
    absent: list[Op] = []
    if not getattr(server_args, "enable_hierarchical_cache", False):
        absent += _HOST_TIER
    if getattr(server_args, "disaggregation_mode", "null") == "null":
        absent += _TRANSFER
    if getattr(server_args, "pp_size", 1) == 1:
        absent += _RELAY
    if absent:
        probe.hook("sglang.absent", absent, live=True)
