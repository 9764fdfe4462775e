"""Batch: what a scan has found new, as rows of the tables of a trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import expand
from .event import Op, op_name
from .expand import Events
from .layout import Fact, Reason

Row = dict[str, Any]


@dataclass(slots=True)
class Offset:
    """How far a segment has been read."""

    process: int
    segment: int
    bytes: int
    events: int  # committed ones, be they stored or damaged
    done: bool = False


@dataclass(slots=True)
class Batch:
    """What is new. Rows have the columns of the tables of the same names."""

    events: Events = field(default_factory=lambda: expand.empty(0))
    requests: list[Row] = field(default_factory=list)
    hooks: list[Row] = field(default_factory=list)
    notes: list[Row] = field(default_factory=list)
    gaps: list[Row] = field(default_factory=list)  # closed ones
    anchors: list[Row] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Nothing is new."""
        return not (self.offsets or self.anchors)


def request_row(content: dict[str, Any]) -> Row:
    """What a request's fact says."""
    return {
        "request": content["number"],
        "request_id": content["id"],
        "attempt": content["attempt"],
        "client_id": content["client"] or None,
        "trace_parent": content["parent"] or None,
    }


def operation(code: int) -> str:
    """How SQL spells the op or fact of a code."""
    return Fact(code).name.lower() if code >= min(Fact) else op_name(Op(code))


def gap_row(
    process: int,
    writer: int | None,
    reason: int,
    op: int | None,
    count: int,
    window: tuple[int | None, ...],
) -> Row:
    """Events that are missing, told by no record yet. `window`: first and last order and ns."""
    first_order, last_order, first_ns, last_ns = window
    return {
        "process": process,
        "writer": writer,
        "reason": Reason(reason).name.lower(),
        "op": None if op is None else operation(op),
        "count": count,
        "first_order": first_order,
        "last_order": last_order,
        "first_ns": first_ns,
        "last_ns": last_ns,
        "open": True,
        "detail": None,
    }


def anchor_row(process: int, anchor: tuple[int, int]) -> Row:
    """The same instant on CLOCK_MONOTONIC and CLOCK_REALTIME."""
    return {"process": process, "monotonic_ns": anchor[0], "realtime_ns": anchor[1]}
