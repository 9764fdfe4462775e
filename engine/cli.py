"""`slotscope serve`: the embedded engine behind HTTP."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from .config import EngineConfig
from .flags import SERVER_FLAGS, flags
from .options import configure, make_engine, offer, refusing, traced
from .patches import PATCHES

_GRACE_S = 10  # for requests under way when the server is told to end

_HELP = f"""Serve a hybrid model over HTTP, with SGLang's and OpenAI's endpoints.

Answers /generate, /v1/completions, /v1/chat/completions, /v1/models,
/flush_cache, /abort_request, /health, /health_generate and /metrics.
Ctrl-C lets requests under way end, for {_GRACE_S} s at most.

The small model inside, traced:

    slotscope serve --model-path bundled --trace traces/first

The same with speculation, and with an upstream bug brought back for
`slotscope check traces/bug` to find:

    slotscope serve --model-path bundled --trace traces/bug
        --speculative-algorithm NEXTN
        --without-patch prefill-donation-guard

Ask it, as one asks SGLang:

    curl localhost:30000/generate -d '{{"text": "Line 1"}}'

Patches: {", ".join(PATCHES)}.
"""


def serve(**given: Any) -> None:
    """Run the server until it is told to end; its options are those of `flags(SERVER_FLAGS)`."""
    own = {flag.name: given.pop(flag.name) for flag in SERVER_FLAGS}
    with refusing("serve"):
        config = configure(given)
        with _listening(own["host"], own["port"]) as listener, _traced(own["trace"]):
            _run(config, listener)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """The port is taken first: a model may take minutes to load, only to find it in use."""
    from .server.listen import bind

    with bind(host, port) as listener:
        yield listener


@contextlib.contextmanager
def _traced(directory: Path | None) -> Iterator[None]:
    with traced(directory):
        if directory is not None:
            typer.echo(f"slotscope serve: tracing into {directory}")
        yield


def _run(config: EngineConfig, listener: socket.socket) -> None:
    """Load the model and serve it."""
    import uvicorn

    from .server.app import create_app
    from .tokenizer import Tokenizer

    class Server(uvicorn.Server):
        """Tells when it is ready, and ends without being killed by its own signal."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if not self.should_exit:
                host, port = listener.getsockname()[:2]
                host = f"[{host}]" if ":" in host else host
                name = config.served_model_name or config.model_path
                typer.echo(f"slotscope serve: {name} is ready at http://{host}:{port}")

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own raises the signal again when it is done, and a SIGTERM then kills the
            # process before the trace is closed: it would look like a crash.
            signals = (signal.SIGINT, signal.SIGTERM)
            before = {each: signal.signal(each, self.handle_exit) for each in signals}
            try:
                yield
            finally:
                for each, handler in before.items():
                    signal.signal(each, handler)

    tokenizer = Tokenizer.load(config.model_path)
    app = create_app(make_engine(config), tokenizer)
    Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    ).run(sockets=[listener])


offer(serve, flags(SERVER_FLAGS), _HELP)
