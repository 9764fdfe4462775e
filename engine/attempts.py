"""Attempts: each time that a request is queued, it has another number in the trace.

A retracted request starts over with other slots, while a forward of its last attempt may still be
in flight. Under a number of its own neither can be taken for the other.
"""

from __future__ import annotations

from itertools import count

from slotscope.instrument import probe

from .request import Request

_NUMBERS = count(1)
"""Requests are numbered through all engines of a process, as its trace does."""


def begin_attempt(request: Request) -> None:
    """Number a request that is about to be queued, and tell the trace whose number it is."""
    request.number = next(_NUMBERS)
    probe.request(
        request.request_id,
        number=request.number,
        attempt=request.usage.retractions,
        client_id=request.client_id,
        trace_parent=request.trace_parent,
    )
