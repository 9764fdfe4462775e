"""Trace and span ids, computed from what they name, so that a second export gives the same ids.

`instrument/sql/spans/span_hash.sql` and its neighbours compute the same in SQL; a test compares
the two. The hash is the finaliser of splitmix64 (Steele, Lea, Flood 2014, with Stafford's
constants, variant 13). It maps 64 bits to 64 bits one to one, so two events of a trace never
share a span id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.uint64]

MASK = (1 << 64) - 1


class UidError(ValueError):
    """A trace uid that has not 64 bits."""


class Domain(IntEnum):
    """What an id names. Each has a seed of its own, so that event 7 and request 7 differ."""

    EVENT = 1
    LEASE = 2
    REQUEST = 3
    FORWARD = 4
    REQUEST_TRACE_HIGH = 5
    REQUEST_TRACE_LOW = 6
    FORWARD_TRACE_HIGH = 7
    FORWARD_TRACE_LOW = 8
    ENGINE_TRACE_HIGH = 9
    ENGINE_TRACE_LOW = 10


def mix64(value: ArrayLike) -> Ids:
    """The finaliser of splitmix64, for each element. Multiplication wraps at 64 bits."""
    z = np.atleast_1d(np.asarray(value, dtype=np.uint64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _pair(high: ArrayLike, low: ArrayLike, shift: int) -> Ids:
    """Two non-negative numbers in one; `low` has less than `shift` bits."""
    above = np.atleast_1d(np.asarray(high, dtype=np.int64)).astype(np.uint64)
    below = np.atleast_1d(np.asarray(low, dtype=np.int64)).astype(np.uint64)
    return (above << np.uint64(shift)) | below


def _hash(seed: int | Ids, key: Ids) -> Ids:
    """An id is never zero: to OpenTelemetry, zero means that there is none."""
    return np.maximum(mix64(np.uint64(seed) ^ key), np.uint64(1))


@dataclass(frozen=True, slots=True)
class SpanIds:
    """The ids of one trace. Arguments are numbers or arrays, results are [N] uint64.

    Raises:
        UidError: `uid`, the trace's random number, has not 64 bits.
    """

    uid: int

    def __post_init__(self) -> None:
        if not 0 <= self.uid <= MASK:
            raise UidError(
                f"The trace's uid is {self.uid}, but must have 64 bits. "
                "Without it no span has an id. Take it from the trace's `meta` table."
            )

    def seed(self, domain: Domain) -> int:
        """The seed of one kind of id, 64 bits."""
        return int(mix64(np.uint64(self.uid) ^ mix64(int(domain)))[0])

    def event(self, writer: ArrayLike, seq: ArrayLike) -> Ids:
        """Span ids of events."""
        return _hash(self.seed(Domain.EVENT), _pair(writer, seq, 40))

    def request(self, process: ArrayLike, request: ArrayLike) -> Ids:
        """Span ids of requests."""
        return _hash(self.seed(Domain.REQUEST), _pair(process, request, 32))

    def forward(self, process: ArrayLike, forward: ArrayLike) -> Ids:
        """Span ids of forwards."""
        return _hash(self.seed(Domain.FORWARD), _pair(process, forward, 32))

    def lease(
        self, process: ArrayLike, pool: ArrayLike, slot: ArrayLike, generation: ArrayLike
    ) -> Ids:
        """Span ids of leases. Four numbers do not fit into 64 bits: hashed in two steps."""
        place = mix64(np.uint64(self.seed(Domain.LEASE)) ^ _pair(process, pool, 32))
        return np.maximum(mix64(place ^ _pair(slot, generation, 32)), np.uint64(1))

    def request_trace(self, process: ArrayLike, request: ArrayLike) -> list[str]:
        """Trace ids of requests that came without a traceparent, 32 hexadecimal digits each."""
        key = _pair(process, request, 32)
        return self._trace(Domain.REQUEST_TRACE_HIGH, Domain.REQUEST_TRACE_LOW, key)

    def forward_trace(self, process: ArrayLike, forward: ArrayLike) -> list[str]:
        """Trace ids of forwards, and of events that name a forward but no request."""
        key = _pair(process, forward, 32)
        return self._trace(Domain.FORWARD_TRACE_HIGH, Domain.FORWARD_TRACE_LOW, key)

    def engine_trace(self, process: ArrayLike) -> list[str]:
        """Trace ids of events that name neither."""
        key = _pair(process, 0, 32)
        return self._trace(Domain.ENGINE_TRACE_HIGH, Domain.ENGINE_TRACE_LOW, key)

    def _trace(self, high: Domain, low: Domain, key: Ids) -> list[str]:
        above, below = _hash(self.seed(high), key), _hash(self.seed(low), key)
        return [a + b for a, b in zip(hex64(above), hex64(below), strict=True)]


def hex64(ids: Ids) -> list[str]:
    """Each id as 16 hexadecimal digits."""
    return [f"{i:016x}" for i in ids.tolist()]
