"""Notes: what a scheduler is set up to do, as the trace keeps it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from slotscope.instrument import probe

from . import absent

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
    for rank in RANKS:
        found = _rank(scheduler, rank)
        if found is not None:
            probe.note(f"sglang.{rank}", found)
    absent.tell(scheduler.server_args)
    for name in ARGUMENTS:
        value = getattr(scheduler.server_args, name, None)
        if isinstance(value, (str, int, float, bool)):
            probe.note(f"sglang.{name}", value)


def _rank(scheduler: Any, name: str) -> int | None:
    """A rank, from where releases keep it: the scheduler's own state, or the process's."""
    context: Any = import_module("sglang.srt.runtime_context")
    for place in (getattr(scheduler, "ps", None), getattr(context, "get_parallel", _nowhere)()):
        try:
            found = getattr(place, name)
        except Exception:  # A field that was not set raises what it likes.
            continue
        if found is not None:
            return int(found)
    return None


def _nowhere() -> None:
    """A release without a parallel context."""
