"""Group: the requests of a batch, with what the columns of its events have in common.

A decode batch runs with the same requests for many steps, so this is made once and kept on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slotscope.instrument.layout import NULL32

from . import layout
from .ids import Id, plain
from .requests import Live, Requests, Told

GROUP = "slotscope_group"
"""Attribute of SGLang's batches."""

Column = Sequence[Any] | np.ndarray[Any, Any]


class Group:
    """Lists are in the order of the batch's rows."""

    __slots__ = ("_slots", "lives", "nothing", "numbers", "reqs", "rows", "told")

    def __init__(self, reqs: list[Any], told: list[Told], lives: list[Live]) -> None:
        self.reqs, self.told, self.lives = reqs, told, lives
        self.numbers: Column = np.array([each.number for each in told], np.int32)
        self.nothing: Column = np.full(len(told), NULL32, np.int32)  # a column of nulls
        self.rows: Column = _packed([layout.row(req) for req in reqs])
        self._slots: Column | None = None

    @property
    def slots(self) -> Column:
        """The live slots: a column, once all their numbers are known."""
        if self._slots is None:
            ids: list[Id] = [live.slot for live in self.lives]
            column = _packed([*map(plain, ids)])
            if isinstance(column, list):
                return ids
            self._slots = column
        return self._slots

    def depths(self) -> list[int]:
        """The depths of the live states, as the host knows them. 0 where it doesn't."""
        return [live.depth or 0 for live in self.lives]

    def moved(self, depths: Sequence[int]) -> None:
        """The live states have other depths now."""
        for live, depth in zip(self.lives, depths, strict=True):
            live.depth = depth


def of(batch: Any, requests: Requests) -> Group | None:
    """The group of a batch. None for an idle batch, and for a model without recurrent states."""
    group: Group | None = getattr(batch, GROUP, None)
    if group is not None and group.reqs == batch.reqs:
        return group
    lives = [requests.live(req) for req in batch.reqs]
    some = [live for live in lives if live is not None]
    group = None
    if some and len(some) == len(lives):
        group = Group(batch.reqs[:], [requests.of(req) for req in batch.reqs], some)
    setattr(batch, GROUP, group)
    return group


def _packed(values: list[int | None]) -> Column:
    return values if None in values else np.array(values, np.int32)
