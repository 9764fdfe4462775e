"""Sealer: decides when a collector rolls, and survives a roll for which there is no room."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from .manifest import SealedError

if TYPE_CHECKING:
    from slotscope.instrument.store import Store

EVENTS_ENVIRONMENT = "SLOTSCOPE_ROLL_EVENTS"
MINUTES_ENVIRONMENT = "SLOTSCOPE_ROLL_MINUTES"
RETRY_S = 60.0

log = logging.getLogger("slotscope.collector")


class LimitError(ValueError):
    """A limit that is no positive number. The message names it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much stays in `live.duckdb` before it is sealed; whichever comes first."""

    events: int = 2_000_000
    minutes: float = 60.0  # since the earliest event

    def __post_init__(self) -> None:
        for name, value in (("events", self.events), ("minutes", self.minutes)):
            if not value > 0:
                raise LimitError(
                    f"The limit of {name} in live.duckdb is {value}, so it would be sealed without "
                    "end. Give a positive number."
                )

    @classmethod
    def of_environment(cls) -> Limits:
        """What the environment of a spawned collector says.

        Raises:
            LimitError: it is no positive number.
        """
        try:
            return cls(
                int(os.environ.get(EVENTS_ENVIRONMENT, cls().events)),
                float(os.environ.get(MINUTES_ENVIRONMENT, cls().minutes)),
            )
        except ValueError as error:
            raise LimitError(f"{EVENTS_ENVIRONMENT} or {MINUTES_ENVIRONMENT}: {error}") from error


class Sealer:
    """Asked after each batch."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._not_before_s = 0.0

    def step(self, store: Store) -> None:
        """Seal if it is time to. What fails is told and tried again; the events stay where they
        were."""
        if not self._due(store):
            return
        try:
            store.seal()
        except (duckdb.Error, OSError, SealedError) as error:
            self._not_before_s = time.monotonic() + RETRY_S
            log.warning("Nothing was sealed, and live.duckdb grows until it can be: %s", error)

    def _due(self, store: Store) -> bool:
        if not store.open_events or time.monotonic() < self._not_before_s:
            return False
        age_ns = time.monotonic_ns() - store.open_since_ns
        return store.open_events >= self._limits.events or age_ns >= self._limits.minutes * 60 * 1e9
