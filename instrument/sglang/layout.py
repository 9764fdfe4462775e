"""Layout: where a release keeps what belongs to a request.

From 0.5.19 the recurrent state's fields stand on `req.kv`, before that on the request itself.
"""

from __future__ import annotations

from typing import Any


def holder(req: Any) -> Any:
    """The object that has a request's `mamba_*` fields."""
    kv: Any = getattr(req, "kv", None)
    return kv if hasattr(kv, "mamba_pool_idx") else req


def row(req: Any) -> int | None:
    """The request's row in the request pool; None before it has one."""
    kv: Any = getattr(req, "kv", None)
    found: int | None = getattr(kv if hasattr(kv, "req_pool_idx") else req, "req_pool_idx", None)
    return found


def node(handle: Any) -> int | None:
    """A tree node's number. The Rust core hands out numbers, the Python core of old nodes."""
    found = getattr(handle, "id", handle)
    return int(found) if found is not None else None


def matched(result: Any) -> int:
    """Tokens of the prefix that a match found: its KV lies on the device, the rest on the host."""
    length = getattr(result, "device_prefix_len", None)
    on_device = int(length) if length is not None else len(result.device_indices)
    return on_device + int(getattr(result, "host_hit_length", 0))


def on_host(result: Any) -> bool:
    """Whether a match found a checkpoint that has to be loaded from the host first."""
    return bool(getattr(result, "mamba_host_hit_length", 0))


def session(req: Any) -> str | None:
    """The streaming session that a request is a turn of. It keeps row and slots between turns."""
    found: Any = getattr(req, "session", None)
    return str(found.session_id) if getattr(found, "streaming", False) else None


def tokens(req: Any) -> int:
    """Tokens of a request's prompt and output."""
    return len(req.origin_input_ids) + len(req.output_ids)


def states(pool: Any) -> tuple[Any, ...]:
    """The components of the recurrent states in a request pool, each [layers, slots, ...]."""
    cache = pool.mamba_pool.mamba_cache
    return (*cache.conv, cache.temporal)


def places(pool: Any, slots: Any) -> Any:
    """Where slots lie in the components: elsewhere than their numbers say in a unified pool."""
    translate: Any = getattr(pool, "translate_mamba_indices", None)
    return slots if translate is None else translate(slots)


def accepted(result: Any) -> list[int]:
    """Tokens that a verify accepted for each request, the fed root included. Host values."""
    root: int = getattr(result, "num_non_draft_tokens_per_req", 1)
    return [drafts + root for drafts in result.num_correct_drafts_per_req_cpu]
