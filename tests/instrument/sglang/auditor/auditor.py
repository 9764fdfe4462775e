"""An SGLang plugin for tests: notes in the trace what SGLang itself holds whenever it is idle.

The note `audit` is JSON: `free`, the free list; `tree`, what the prefix tree's nodes hold.
"""

from __future__ import annotations

import json
from typing import Any


def register() -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.on_idle", audit, HookType.BEFORE)


def audit(scheduler: Any) -> None:
    """Note the state of the pool and the tree, where it has changed."""
    from slotscope.instrument import probe

    allocator = scheduler.req_to_token_pool.mamba_allocator
    held = scheduler.tree_cache.all_mamba_values_flatten()
    state = {"free": sorted(allocator.free_slots.tolist()), "tree": sorted(held.tolist())}
    said = json.dumps(state)
    if getattr(scheduler, "audited", None) != said:
        scheduler.audited = said
        probe.note("audit", said)
