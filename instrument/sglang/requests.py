"""Requests: what the plugin remembers of each, beside what SGLang says itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from slotscope.instrument import probe

from . import layout
from .ids import Id, Ids


@dataclass(slots=True, eq=False)
class Live:
    """A request's live slot in one of its lives, and the depth that the host knows."""

    tensor: Any  # SGLang's own, by which a new lease is told from the old one
    slot: Id
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A checkpoint that a request was pointed at."""

    slot: Id
    node: int | None
    label: int | None


@dataclass(slots=True, eq=False)
class Told:
    """A request, and what of it was told and is needed later."""

    request_id: str
    number: int
    attempt: int = 0
    live: Live | None = None
    match: Match | None = None
    first: str | None = None  # "clear" or "restore": how the live slot begins in the next forward
    track: int | None = None  # depth of the checkpoint that the next prefill leaves
    keep: int | None = None  # ping-pong position of the kept checkpoint
    keep_slot: Id = None


class Requests:
    """Requests by the object that SGLang has for each. None is kept alive.

    The turns of a streaming session are one request, since they share one live state.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._told: WeakKeyDictionary[Any, Told] = WeakKeyDictionary()
        self._sessions: dict[str, Told] = {}

    def of(self, req: Any) -> Told:
        """What is known of a request; on first sight, nothing but its name."""
        told = self._told.get(req)
        if told is None:
            session = layout.session(req)
            told = self._sessions.get(session) if session is not None else None
            if told is None:
                name = session or str(req.rid)
                told = Told(name, probe.request(name))
                if session is not None:
                    self._sessions[session] = told
            self._told[req] = told
        return told

    def close(self, session: str) -> Told | None:
        """A streaming session is over; what is known of it, if it ever had a turn."""
        return self._sessions.pop(session, None)

    def again(self, told: Told) -> None:
        """A retracted request starts over, as another attempt under a number of its own."""
        told.attempt += 1
        told.number = probe.request(told.request_id, attempt=told.attempt)
        told.live = told.match = told.first = told.track = told.keep = told.keep_slot = None

    def live(self, req: Any) -> Live | None:
        """The live slot that a forward of this request writes; None if it never had one.

        A request that ended keeps its last: SGLang may have built a batch with it before.
        """
        told = self.of(req)
        tensor = layout.holder(req).mamba_pool_idx
        if tensor is not None and (told.live is None or told.live.tensor is not tensor):
            told.live = Live(tensor, self._ids.of(tensor)[0])
        return told.live
