"""The application: which path leads where, and how an error leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from slotscope.engine.request import RequestError
from slotscope.engine.tokenizer import Tokenizer

from . import admin
from .backend import Engine
from .chat import chat_completions
from .completions import completions
from .desk import Desk
from .errors import ApiError, reply
from .generate import generate

ROUTES = (
    Route("/generate", generate, methods=["POST"]),
    Route("/v1/completions", completions, methods=["POST"]),
    Route("/v1/chat/completions", chat_completions, methods=["POST"]),
    Route("/v1/models", admin.models, methods=["GET"]),
    Route("/server_info", admin.server_info, methods=["GET"]),
    Route("/get_server_info", admin.server_info, methods=["GET"]),
    Route("/flush_cache", admin.flush_cache, methods=["GET", "POST"]),
    Route("/abort_request", admin.abort_request, methods=["POST"]),
    Route("/health", admin.health, methods=["GET"]),
    Route("/health_generate", admin.health_generate, methods=["GET"]),
    Route("/metrics", admin.metrics, methods=["GET"]),
)


def create_app(engine: Engine, tokenizer: Tokenizer | None) -> Starlette:
    """The server of one engine, which it starts and stops with itself.

    Args:
        engine: not started yet.
        tokenizer: None serves token ids only.
    """
    desk = Desk(engine, tokenizer)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(engine.start)
        try:
            yield
        finally:
            await run_in_threadpool(engine.stop)

    app = Starlette(
        routes=list(ROUTES),
        lifespan=lifespan,
        exception_handlers={
            ApiError: _api_error,
            RequestError: _request_error,
            HTTPException: _http_error,
            Exception: _failure,
        },
    )
    app.state.desk = desk
    return app


async def _api_error(http: HTTPRequest, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    if error.status < 500:
        http.app.state.desk.metrics.refused()
    return reply(error)


async def _request_error(http: HTTPRequest, error: Exception) -> JSONResponse:
    """The engine's own refusal."""
    return await _api_error(http, ApiError(str(error)))


async def _http_error(http: HTTPRequest, error: Exception) -> JSONResponse:
    """Starlette's: no such path, or no such method there."""
    assert isinstance(error, HTTPException)
    known = ", ".join(f"{'/'.join(sorted(r.methods or ()))} {r.path}" for r in ROUTES)
    message = f"{error.detail}: {http.method} {http.url.path}. The server knows {known}."
    answer = reply(ApiError(message, status=error.status_code))
    answer.headers.update(error.headers or {})
    return answer


async def _failure(_: HTTPRequest, error: Exception) -> JSONResponse:
    """A bug of ours. Starlette raises it again, so that the log has the traceback."""
    return reply(
        ApiError(
            f"The server failed on this call ({type(error).__name__}). Its log has the traceback.",
            status=500,
        )
    )
