"""Grids: at which depths this server leaves checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Grids:
    """In tokens.

    `track` is where decode may leave a checkpoint: the least common multiple of the state's chunk,
    the tree's page and the interval. `step` is where this release does, which differs from `track`
    in releases that forgot the page.
    """

    track: int
    step: int

    def crossed(self, before: int, after: int) -> int | None:
        """The depth of the last grid line in (before, after]; None if there is none."""
        line = after // self.step * self.step
        return line if line > before else None


def of(tree: Any, arguments: Any) -> Grids | None:
    """The grids of a running server; None where it tracks nothing.

    Args:
        tree: its prefix tree.
        arguments: its ServerArgs, as parsed.
    """
    context: Any = import_module("sglang.srt.runtime_context")
    execution = getattr(context, "get_exec", None)
    mamba = getattr(execution(), "mamba", None) if execution is not None else None
    interval = getattr(mamba, "mamba_track_interval", None) or arguments.mamba_track_interval
    chunk = getattr(context, "mamba_cache_chunk_size", None)
    size = chunk() if chunk is not None else arguments.mamba_cache_chunk_size
    if not interval or not size:
        return None
    own = getattr(context, "mamba_track_grid", None)
    track = math.lcm(size, tree.page_size, interval)
    return Grids(track=track, step=own(tree.page_size) if own is not None else interval)
