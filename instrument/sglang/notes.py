"""Notes: what a scheduler is set up to do, as the trace keeps it."""

from __future__ import annotations

from typing import Any

from slotscope.instrument import probe

ARGUMENTS = (
    "model_path",
    "mamba_radix_cache_strategy",
    "mamba_track_interval",
    "page_size",
    "chunked_prefill_size",
    "max_running_requests",
    "max_mamba_cache_size",
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "disable_overlap_schedule",
    "disable_radix_cache",
    "enable_hierarchical_cache",
    "tp_size",
    "pp_size",
    "dp_size",
)
"""Of ServerArgs, as far as a release has them."""

RANKS = ("tp_rank", "pp_rank", "dp_rank")


def tell(scheduler: Any) -> None:
    """Note the server's arguments and this process's ranks."""
    places = (scheduler, getattr(scheduler, "ps", None))
    for rank in RANKS:
        found = next((v for p in places if (v := getattr(p, rank, None)) is not None), None)
        if found is not None:
            probe.note(f"sglang.{rank}", int(found))
    for name in ARGUMENTS:
        value = getattr(scheduler.server_args, name, None)
        if isinstance(value, (str, int, float, bool)):
            probe.note(f"sglang.{name}", value)
