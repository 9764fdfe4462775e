"""Replies: a call's result as one JSON document, or as server-sent events while it comes."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request as HTTPRequest
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .call import Call


class EventStream(StreamingResponse):
    """Server-sent events of a call; when it is over, for whatever reason, so is the call."""

    def __init__(self, call: Call, events: AsyncIterator[dict[str, Any]]) -> None:
        """Send each of `events` as JSON, then `[DONE]`."""
        super().__init__(
            _frames(events),
            media_type="text/event-stream",
            headers={"cache-control": "no-cache", "x-accel-buffering": "no"},
        )
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. A client that leaves cancels the sending."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.close()


async def finished(http: HTTPRequest, call: Call) -> bool:
    """Wait for a call that isn't streamed. False: the client has left, and the call is closed."""
    work = asyncio.create_task(call.finish())
    gone = asyncio.create_task(_gone(http))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return False
        work.result()
        return True
    finally:
        work.cancel()
        gone.cancel()
        call.close()


def finite(value: float) -> float | None:
    """A number that JSON can carry. A corrupt state gives NaN, and the client should see a null."""
    return value if math.isfinite(value) else None


async def _frames(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    async for event in events:
        text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        yield f"data: {text}\n\n"
    yield "data: [DONE]\n\n"


async def _gone(http: HTTPRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass
