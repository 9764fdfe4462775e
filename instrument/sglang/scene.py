"""Scene: what the hooks of one process share, between one call of SGLang's and the next.

All of it belongs to the scheduler's thread, which makes every call that is hooked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role

from .digests import Digests
from .grids import Grids
from .group import Group
from .ids import Id, Ids, known
from .requests import Live, Requests, Told
from .speech import Speech


@dataclass(slots=True)
class Claim:
    """Who asks for slots while a call of SGLang's lasts."""

    request: int | None = None
    role: Role | None = None
    live: Live | None = None
    waiting: list[Sequence[Id]] | None = None  # told by the claimant; None: told at once
    allocator: Any = None  # whose pool a checkpoint comes back to
    label: int | None = None  # of that checkpoint


@dataclass(slots=True, eq=False)
class Book:
    """What is known of one pool's slots. Numbers that are still on the device are not in it yet."""

    pool: int
    owners: dict[int, tuple[int | None, Role | None]] = field(default_factory=dict)
    nodes: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)  # node, label

    def hold(self, slots: Sequence[Id], node: int | None, label: int | None) -> None:
        """A node of the tree has these slots from now on."""
        for slot in slots:
            known(slot, lambda number: self.nodes.__setitem__(number, (node, label)))

    def label(self, number: int | None) -> int | None:
        """The label under which a slot is filed; None for one that is not, and is not known."""
        _, label = self.nodes.get(-1 if number is None else number, (None, None))
        return label


@dataclass(slots=True, eq=False)
class Flight:
    """One launched forward, until its result is read."""

    number: int
    kind: Kind
    launch: int
    pool: int
    group: Group
    micro_batch: int | None = None
    targets: Sequence[Id] | None = None  # planned track slot of each request; None: none is written
    targets_in: Any = None  # SGLang's tensor of them
    written: Sequence[Id] | None = None  # the track slots that the commit was given, where others
    near: list[bool] | None = None  # of each request, whether its track slot may be written
    in_place: frozenset[int] = frozenset()  # rows whose track slot is the kept checkpoint
    tracked: list[int] = field(default_factory=list)  # rows whose track slot is written
    commits: int = 0
    retired: bool = False

    @property
    def said(self) -> dict[str, Any]:
        """The columns that all device acts of the forward have."""
        return {
            "forward": self.number,
            "kind": self.kind,
            "launch": self.launch,
            "micro_batch": self.micro_batch,
            "pool": self.pool,
        }


@dataclass(frozen=True, slots=True)
class Donation:
    """A checkpoint that a request is about to give to the tree."""

    told: Told
    slots: Sequence[Id]
    label: int
    role: Role


class Scene:
    """See the module."""

    def __init__(self) -> None:
        self.ids = Ids()
        self.speech = Speech(self.ids)
        self.requests = Requests(self.ids)
        self.digests = Digests(self.ids) if probe.level > 1 else None
        self.claims: list[Claim] = []
        self.taken: Any = None  # what the free list gave last
        self.hidden = False  # slots move that nobody has asked for yet
        self.evicting = False
        self.flight: Flight | None = None
        self.relayed: Flight | None = None  # of another time, which is being committed now
        self.flights = 0
        self.micro_batch: int | None = None
        self.chain = True  # a verify's drafts are one chain, so that its steps are depths
        self.reach = 0  # tokens within which a lazy verify has a track slot ready
        self.donation: Donation | None = None
        self.filing: int | None = None  # tokens of the prefix under which a state is being filed
        self.serving: int | None = None  # the request that SGLang is about; see locks.py
        self.locking: int | None = None  # the one whose lock is taken or undone now
        self.grids: Grids | None = None
        self.blind: Callable[[Sequence[Op], str], None] = lambda ops, why: None  # see Watch
        self._books: WeakKeyDictionary[Any, Book] = WeakKeyDictionary()

    def book(self, allocator: Any) -> Book:
        """The book of an allocator's pool. Pools are numbered as they turn up."""
        found = self._books.get(allocator)
        if found is None:
            found = self._books[allocator] = Book(len(self._books))
        return found

    def allocated(
        self, allocator: Any, slots: Sequence[Id], request: int | None, role: Role | None
    ) -> None:
        """Tell that leases begin."""
        book = self.book(allocator)
        self.speech.say(Op.ALLOCATE, slots, request=request, role=role, pool=book.pool)
        for slot in slots:
            known(slot, lambda number: book.owners.__setitem__(number, (request, role)))
