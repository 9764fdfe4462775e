"""What is asked of the server itself: models, cache, abort, health, metrics."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from slotscope.engine.request import SamplingParams

from .body import read_fields
from .desk import Ask, Desk
from .errors import ApiError
from .generation import Wish

HEALTH_TIMEOUT_S = 20.0
SETTLE_TIMEOUT_S = 5.0  # for what the engine still does when nobody waits for it
SETTLE_POLL_S = 0.005


async def models(http: HTTPRequest) -> Response:
    """The one model."""
    desk: Desk = http.app.state.desk
    model = {
        "id": desk.model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "slotscope",
        "root": str(desk.engine.config.model_path),
        "max_model_len": desk.engine.context_max,
    }
    return JSONResponse({"object": "list", "data": [model]})


async def server_info(http: HTTPRequest) -> Response:
    """What the engine was told at its start, by the names of its flags, as SGLang's servers do."""
    desk: Desk = http.app.state.desk
    told = asdict(desk.engine.config).items()
    return JSONResponse({name: str(v) if isinstance(v, Path) else v for name, v in told})


async def flush_cache(http: HTTPRequest) -> Response:
    """Drop what the radix tree holds, so that the next request starts cold."""
    desk: Desk = http.app.state.desk
    deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
    while not await _flush(desk):
        # A client that has its whole answer may flush at once, but the engine is not idle yet:
        # under overlap it has launched one forward too many, and a stop string it learns late.
        if desk.is_awaited or time.monotonic() > deadline_s:
            return await _not_flushed(desk)
        await asyncio.sleep(SETTLE_POLL_S)
    return PlainTextResponse("Cache flushed.\n")


async def abort_request(http: HTTPRequest) -> Response:
    """End a request by the server's or the client's name for it, or all of them.

    One that has ended already is no error: it may have ended while the client asked.
    """
    desk: Desk = http.app.state.desk
    fields = await read_fields(http)
    name = fields.text("rid")
    everything = fields.flag("abort_all", default=False)
    fields.close()
    if everything:
        return JSONResponse({"aborted": desk.abort_all()})
    if not name:
        raise ApiError("The body has no rid. Give one, or set abort_all to true.", param="rid")
    return JSONResponse({"aborted": desk.abort(name)})


async def health(_: HTTPRequest) -> Response:
    """The server answers."""
    return Response(status_code=200)


async def health_generate(http: HTTPRequest) -> Response:
    """The engine generates: one token, within HEALTH_TIMEOUT_S."""
    desk: Desk = http.app.state.desk
    wish = Wish(SamplingParams(max_new_tokens=1, temperature=0.0, ignore_eos=True))
    call = desk.take(http, [Ask((0,), wish, "health")])
    try:
        await asyncio.wait_for(call.finish(), HEALTH_TIMEOUT_S)
    except TimeoutError:
        return PlainTextResponse(
            f"The engine made no token within {HEALTH_TIMEOUT_S:g} s.\n", status_code=503
        )
    finally:
        call.close()
    finish = call.generations[0].finish
    if finish is None or finish.reason == "abort":
        return PlainTextResponse("The engine aborted the token that was asked.\n", status_code=503)
    return Response(status_code=200)


async def metrics(http: HTTPRequest) -> Response:
    """Prometheus' text format."""
    desk: Desk = http.app.state.desk
    text = await run_in_threadpool(desk.metrics.exposition)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _flush(desk: Desk) -> bool:
    try:
        return await run_in_threadpool(desk.engine.flush_cache)
    except RuntimeError as error:
        raise ApiError(str(error), status=503) from error


async def _not_flushed(desk: Desk) -> Response:
    stats = await run_in_threadpool(desk.engine.stats)
    return PlainTextResponse(
        f"Flush cache failed: there are pending requests ({stats.running} running, "
        f"{stats.queued} queued). Wait until they have ended, or POST /abort_request.\n",
        status_code=400,
    )
