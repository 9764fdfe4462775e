"""Generations: numbers each slot's lives, odd while it is allocated, even while it is free.

Hooks can't know a slot's generation in time, so it is derived here: +1 at each allocate and each
free, in the order in which they were said. Every other event gets the generation that its slot has
at its position. Batches come one after another; see `stale` for what a batch can undo.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .event import Op, Outcome
from .expand import Events

Array = np.ndarray[Any, np.dtype[np.int64]]

CARRIED_ORDERS = 1 << 17
"""Changes older than this many orders are carried as a count for each slot only."""
CHANGED = "op IN ('allocate', 'free') AND slot IS NOT NULL AND outcome IS DISTINCT FROM 'failed'"
"""Which events change a slot's generation, in SQL."""

_POOL_SHIFT, _PROCESS_SHIFT = 32, 40
_ORDER_BITS = 40


class Generations:
    """Counts lives over the batches of a trace."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.int64)  # [K] slots seen, sorted
        self._base = np.empty(0, np.int64)  # [K] their changes that are no longer carried
        self._changes = np.empty(0, np.int64)  # index in keys << 40 | order, sorted
        self._floor: dict[int, int] = {}  # process -> changes up to this order are in base
        self._judged: dict[int, int] = {}  # process -> highest position that got a generation

    def resume(self, changes: Events, judged: dict[int, int], lives: Events) -> None:
        """Stand where these changes, and each process's events up to a position, are known.

        Args:
            lives: process, pool, slot and how many `changes` each slot had before those.
        """
        keys = _keys(lives, "slot")
        sorting = np.argsort(keys)
        self._keys, self._base = keys[sorting], lives["changes"][sorting]
        self._learn(_keys(changes, "slot"), changes["order"])
        self._judged = dict(judged)
        self._forget()

    def assign(self, events: Events) -> Array:
        """Fill in `generation` and `src_generation` of a batch.

        Returns:
            Keys of slots (see `slot_of`) whose events, in this batch or an earlier one, may have
            got a wrong generation: a change came after events that it precedes, or an event came
            long after a change that it precedes. None if all of a trace is one batch.
        """
        changes = _is_change(events)
        keys, orders = _keys(events, "slot")[changes], events["order"][changes]
        late = keys[orders <= _per_process(self._judged, events["process"][changes])]
        self._learn(keys, orders)
        too_old = [
            self._count(events, "slot", "generation"),
            self._count(events, "src_slot", "src_generation"),
        ]
        for process, position in _highest(events).items():
            self._judged[process] = max(position, self._judged.get(process, -1))
        self._forget()
        return np.unique(np.concatenate([late, *too_old]))

    def _learn(self, keys: Array, orders: Array) -> None:
        known = np.union1d(self._keys, keys)
        moved = np.searchsorted(known, self._keys)
        base = np.zeros(len(known), np.int64)
        base[moved] = self._base
        kept = (moved[self._changes >> _ORDER_BITS] << _ORDER_BITS) | (
            self._changes & ((1 << _ORDER_BITS) - 1)
        )
        new = np.searchsorted(known, keys) << _ORDER_BITS | orders
        self._keys, self._base = known, base
        self._changes = np.sort(np.concatenate([kept, new]), kind="stable")

    def _count(self, events: Events, slot: str, generation: str) -> Array:
        """Fill one column; keys of rows that lie before what is carried."""
        keys = _keys(events, slot)
        rows = np.flatnonzero(keys >= 0)
        keys, positions = keys[rows], events["position"][rows]
        index = np.searchsorted(self._keys, keys)
        inside = index < len(self._keys)
        inside[inside] = self._keys[index[inside]] == keys[inside]
        if not len(rows):
            return rows
        counts = np.zeros(len(rows), np.int64)
        index, at = index[inside], positions[inside]
        first = np.searchsorted(self._changes, index << _ORDER_BITS)
        last = np.searchsorted(self._changes, index << _ORDER_BITS | at, side="right")
        counts[inside] = self._base[index] + last - first
        column = events[generation].copy()
        column[rows] = counts
        events[generation] = column
        floors = _per_process(self._floor, events["process"][rows[inside]])
        return keys[inside][(at <= floors) & (self._base[index] > 0)]

    def _forget(self) -> None:
        """Fold old changes into the base."""
        if len(self._changes) < 2 * CARRIED_ORDERS:
            return
        index, orders = self._changes >> _ORDER_BITS, self._changes & ((1 << _ORDER_BITS) - 1)
        processes = self._keys >> _PROCESS_SHIFT
        for process, judged in self._judged.items():
            self._floor[process] = max(judged - CARRIED_ORDERS, self._floor.get(process, -1))
        old = orders <= _per_process(self._floor, processes[index])
        self._base += np.bincount(index[old], minlength=len(self._keys))
        self._changes = self._changes[~old]


def slot_of(key: int) -> tuple[int, int, int]:
    """(process, pool, slot) of a key."""
    return key >> _PROCESS_SHIFT, key >> _POOL_SHIFT & 0xFF, key & 0xFFFFFFFF


def _is_change(events: Events) -> Array:
    """Mask of the allocates and frees that happened."""
    said: Any = np.isin(events["op"], (Op.ALLOCATE, Op.FREE))
    failed = events["outcome"] == Outcome.FAILED
    mask: Array = said & ~failed & (_keys(events, "slot") >= 0)
    return mask


def _keys(events: Events, slot: str) -> Array:
    """One number for (process, pool, slot); -1 where there is no slot, or none can have it."""
    slots, pools = events[slot].astype(np.int64), events["pool"].astype(np.int64)
    processes = events["process"].astype(np.int64)
    keys: Array = processes << _PROCESS_SHIFT | pools << _POOL_SHIFT | slots
    keys[(slots < 0) | (pools < 0) | (pools > 0xFF)] = -1
    return keys


def _highest(events: Events) -> dict[int, int]:
    """The highest position of each process in the batch."""
    processes, positions = events["process"], events["position"]
    return {
        process: int(positions[processes == process].max())
        for process in np.unique(processes).tolist()
    }


def _per_process(values: dict[int, int], processes: Array) -> Array:
    """For each row the value of its process, -1 if it has none."""
    out = np.full(len(processes), -1, np.int64)
    for process, value in values.items():
        out[processes == process] = value
    return out
