"""The event, defined once.

The segment format, the Arrow schema, the table and its column comments, and the dashboard's help
are derived from `Event`. What each operation means, and which columns it fills, is told in
`docs/events.md`, which a test compares with this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, get_type_hints

import numpy as np


class Op(IntEnum):
    """What happened. The names are also span names: `slot.<op>`, `request.begin`, ..."""

    ALLOCATE = 1
    FREE = 2
    CLEAR = 3
    ADVANCE = 4
    SWAP = 5
    SCATTER = 6
    COPY = 7
    DONATE = 8
    INSERT = 9
    MATCH = 10
    RESTORE = 11
    SPLIT = 12
    EVICT = 13
    LOCK = 14
    UNLOCK = 15
    RETRACT = 16
    OFFLOAD = 17
    LOAD_BACK = 18
    TRANSFER_SEND = 19
    TRANSFER_RECEIVE = 20
    REQUEST_BEGIN = 32
    REQUEST_END = 33
    FORWARD_LAUNCH = 34
    FORWARD_DONE = 35
    VERIFY_PLAN = 36
    RELAY_SEND = 37
    RELAY_RECEIVE = 38
    AMEND = 39


class Kind(IntEnum):
    """What a forward computes."""

    PREFILL = 1
    DECODE = 2
    VERIFY = 3
    DUMMY = 4
    CAPTURE = 5


class Role(IntEnum):
    """What a slot is to its owner."""

    LIVE = 1
    KEEP = 2
    SPARE = 3
    NODE = 4
    PAD = 5
    SCRATCH = 6


class Source(IntEnum):
    """Who says so: the host's intent, or the device's truth."""

    HOST = 1
    DEVICE = 2


class Component(IntEnum):
    """Which part of the state; null means all of it."""

    CONV = 1
    SSM = 2
    RING = 3
    SIDE = 4


class Unit(IntEnum):
    """What `step` and `src_row` count."""

    TOKEN = 1
    CHUNK = 2
    ROW = 3
    PAGE = 4


class Outcome(IntEnum):
    """How it ended; null means as usual."""

    OK = 1
    FAILED = 2
    EXISTS = 3
    SUPPRESSED = 4
    HIT = 5
    MISS = 6
    FINISHED = 7
    ABORTED = 8
    IN_PLACE = 9


# fmt: off
@dataclass(frozen=True, slots=True)
class Event:
    """One act on a slot, or one step in the life of a request or forward. Null where unknown."""

    process:        Annotated[int, np.int32, "which process of the trace"]
    writer:         Annotated[int, np.int32, "which thread of which process wrote it"]
    seq:            Annotated[int, np.int64, "number within its writer, from 0, without holes"]
    order:          Annotated[int, np.int64, "number of its record within the process"]
    position:       Annotated[int, np.int64, "where it takes effect: launch, else order"]
    time_ns:        Annotated[int, np.int64, "CLOCK_MONOTONIC of the record, nanoseconds"]
    op:             Annotated[int, np.uint8, "Op: what happened"]
    source:         Annotated[int, np.uint8, "Source: host intent or device truth"]
    kind:           Annotated[int, np.uint8, "Kind of the forward"]
    role:           Annotated[int, np.uint8, "Role of the slot to its owner"]
    component:      Annotated[int, np.uint8, "Component of the state, null = all"]
    unit:           Annotated[int, np.uint8, "Unit that step and src_row count in"]
    outcome:        Annotated[int, np.uint8, "Outcome, null = as usual"]
    forward:        Annotated[int, np.int32, "number of the forward within its process"]
    micro_batch:    Annotated[int, np.int32, "pipeline micro-batch"]
    stream:         Annotated[int, np.int32, "device stream, 0 = the forward stream"]
    launch:         Annotated[int, np.int64, "order of the record that launched the device act"]
    pool:           Annotated[int, np.int32, "which state pool"]
    slot:           Annotated[int, np.int32, "index in the pool; 0 is the pad slot"]
    generation:     Annotated[int, np.int32, "odd = live, even = free; from allocates and frees"]
    request:        Annotated[int, np.int32, "interned request, see the requests table"]
    row:            Annotated[int, np.int32, "request-pool row"]
    depth_before:   Annotated[int, np.int32, "tokens in the state before the act"]
    depth:          Annotated[int, np.int32, "tokens in the state after the act"]
    label:          Annotated[int, np.int32, "depth that somebody claims for the state"]
    grid:           Annotated[int, np.int32, "grid that the depth must lie on, null = none"]
    ring:           Annotated[int, np.int32, "inputs in the replay ring, not in the state yet"]
    step:           Annotated[int, np.int32, "verify step that was taken, or what unit says"]
    accept_len:     Annotated[int, np.int32, "tokens that a verify accepted, its root included"]
    src_slot:       Annotated[int, np.int32, "slot that was read"]
    src_generation: Annotated[int, np.int32, "its generation"]
    src_row:        Annotated[int, np.int32, "scratch row that was read"]
    node:           Annotated[int, np.int64, "radix tree node"]
    token_hash:     Annotated[int, np.int64, "rolling hash of the token prefix at depth"]
    digest:         Annotated[int, np.int64, "64-bit hash of the state's bytes"]
    amends:         Annotated[int, np.int64, "seq of the event of this writer that it completes"]
# fmt: on


def columns() -> list[tuple[str, np.dtype[np.generic], str]]:
    """(name, dtype, meaning) of every column of an event, in the order they are stored."""
    hints = get_type_hints(Event, include_extras=True)
    return [(n, np.dtype(h.__metadata__[0]), h.__metadata__[1]) for n, h in hints.items()]


ENUMS: dict[str, type[IntEnum]] = {
    "op": Op,
    "source": Source,
    "kind": Kind,
    "role": Role,
    "component": Component,
    "unit": Unit,
    "outcome": Outcome,
}
"""Columns that hold a code, and the names behind the codes."""


def op_name(op: Op) -> str:
    """How SQL, spans and docs spell an operation: `load_back`, `forward.launch`."""
    dotted = ("REQUEST_", "FORWARD_", "VERIFY_", "RELAY_", "TRANSFER_")
    name = op.name
    for prefix in dotted:
        if name.startswith(prefix):
            name = prefix[:-1] + "." + name.removeprefix(prefix)
    return name.lower()
