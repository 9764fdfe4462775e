"""Running: an admitted request, and what it holds until its end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from slotscope.instrument.event import Role

from .request import Request
from .slots import Lease, Owner
from .tree import Node


@dataclass(frozen=True, slots=True)
class Target:
    """Where a launched forward may leave a checkpoint. Fixed at launch: by the time that the
    result is retired, the request's own pointer may have moved on."""

    position: int  # in the request's pair
    slot: int
    role: Role  # what the slot is to the request
    depth: int | None = None  # None: a verify, which writes only if it crosses a track depth

    @property
    def in_place(self) -> bool:
        """A verify that would write into the slot that holds the current checkpoint."""
        return self.depth is None and self.role is Role.KEEP


@dataclass(slots=True)
class TrackPair:
    """The ping-pong pair: two places for checkpoint slots, and what is known to be in them."""

    leases: list[Lease | None] = field(default_factory=lambda: [None, None])
    depths: list[int | None] = field(default_factory=lambda: [None, None])
    keep: int = 0  # the place of the last checkpoint; the next one goes to the other


@dataclass(slots=True, eq=False)
class Running:
    """State has one owner: slots and pages change hands in `Cache`, the pair in `checkpoints`."""

    request: Request
    number: int  # the request's when it was admitted: a retracted one comes back under another
    row: int
    live: Lease | None  # None once no_buffer has donated it
    locations: list[int]  # KV of its tokens, in whole pages; grows while it decodes
    shared: int  # of them, so many at the front belong to the tree
    node: Node | None  # the node that is locked for it
    fill: int  # tokens to prefill: the prompt, and what was put out before a retraction
    length: int  # tokens in the state after all that is launched; a verify counts once retired
    source: int | None = None  # slot to restore from in the first forward
    pending: int = 0  # inputs in the live slot's replay ring after all that is launched
    fresh: bool = True  # no forward has initialised the live slot yet
    pair: TrackPair = field(default_factory=TrackPair)
    tracked: Target | None = None  # left by the last prefill chunk, to be published
    outstanding: deque[Target | None] = field(default_factory=deque)  # of verifies in flight
    micro_batch: int = 0  # the one that it is computed with, from admission to end
    gone: bool = False  # ended or retracted: results of forwards that name it are of no use

    @property
    def owner(self) -> Owner:
        """As the slot pool knows it."""
        return Owner(request=self.number)
