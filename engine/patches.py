"""Fixes of upstream bugs, each on a switch. All are on but those that `--without-patch` names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .config import ConfigError

PATCHES: dict[str, str] = {
    "lazy-finish-guard": "a finishing request keeps back a checkpoint that a verify wrote in place",
    "prefill-donation-guard": "a prefill keeps back a checkpoint that a verify in flight may write",
    "no-evict-for-spare": "a spare slot, which is transient, never evicts a cached checkpoint",
    "shared-commit": "all drafters commit through one helper; off, NGRAM never commits, and DFLASH "
    "and DSPARK save no checkpoint, which lazy refuses",
    "insert-depth-guard": "the tree refuses a state whose depth is not the depth of its node",
    "checkpoint-grid": "extend leaves checkpoints at depths that a tree page can name",
    "track-grid": "decode leaves checkpoints at depths that a tree page can name",
    "pp-stage-commit": "every pipeline stage commits what a verify accepted, not the last one only",
    "pp-pair-by-microbatch": "a stage commits a relayed result to the micro-batch that it is of",
    "pp-stable-rows": "verify scratch goes by the request's row, not by its place in the batch",
}
"""Name and what it does while it is on."""

GRIDS = frozenset({"checkpoint-grid", "track-grid"})
"""Those that keep every checkpoint at a depth that the tree can name."""


@dataclass(frozen=True, slots=True)
class Patches:
    """Which fixes are off. Ask with `patches.on(name)`."""

    off: frozenset[str] = frozenset()

    @staticmethod
    def without(names: Iterable[str]) -> Patches:
        """All on but these. Raises ConfigError for a name that is none.

        Without a grid the insert guard is off as well: it would keep out what a grid lets through,
        and upstream had lost it when the grids were wrong.
        """
        off = frozenset(names)
        if unknown := sorted(off - PATCHES.keys()):
            raise ConfigError(
                f"no patch is called {', '.join(unknown)}. "
                f"The patches are: {', '.join(sorted(PATCHES))}."
            )
        return Patches(off | {"insert-depth-guard"} if off & GRIDS else off)

    def on(self, name: str) -> bool:
        """Is this fix in force?"""
        if name not in PATCHES:
            raise KeyError(name)
        return name not in self.off
