"""`slotscope serve`: the embedded engine behind HTTP."""

from __future__ import annotations

import contextlib
import inspect
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from slotscope.instrument import probe

from .config import ConfigError, EngineConfig
from .flags import SERVER_FLAGS, Flag, flags
from .folder import BUNDLED, model_folder
from .patches import PATCHES, Patches

if TYPE_CHECKING:
    from .server.backend import Engine

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
    """Run the server until it is told to end; its options are those of `flags()`."""
    own = {flag.name: given.pop(flag.name) for flag in SERVER_FLAGS}
    try:
        config = _configure(given)
        with _listening(own["host"], own["port"]) as listener, _traced(own["trace"]):
            _run(config, listener)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("slotscope"):
            raise
        _refuse(f"needs the package {error.name}. Install it: pip install 'slotscope[engine]'")
    except (ValueError, OSError, probe.ProbeError) as error:
        # Configuration, model folder, tokenizer, address, trace directory: each has its own class
        # and says its own cure.
        _refuse(str(error))


def _configure(given: dict[str, Any]) -> EngineConfig:
    """The configuration that the options describe."""
    values: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in given.items()
    }
    path: Path = values["model_path"]
    Patches.without(values["without_patch"])
    values["model_path"] = model_folder(path)
    if str(path) == BUNDLED and not values["served_model_name"]:
        values["served_model_name"] = BUNDLED
    return EngineConfig(**values)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """The port is taken first: a model may take minutes to load, only to find it in use."""
    from .server.listen import bind

    with bind(host, port) as listener:
        yield listener


@contextlib.contextmanager
def _traced(directory: Path | None) -> Iterator[None]:
    """Trace into `directory` meanwhile, if there is one."""
    if directory is None:
        yield
        return
    probe.start(directory)
    try:
        typer.echo(f"slotscope serve: tracing into {directory}")
        yield
    finally:
        probe.stop()


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
    app = create_app(_engine(config), tokenizer)
    Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    ).run(sockets=[listener])


def _engine(config: EngineConfig) -> Engine:
    import torch

    from .engine import Engine

    if config.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(
            f"--device {config.device}, but torch sees no CUDA device here. Set --device cpu."
        )
    return Engine(config)


def _refuse(message: str) -> NoReturn:
    typer.echo(f"slotscope serve: {' '.join(message.split())}", err=True)
    raise typer.Exit(2)


def _parameter(flag: Flag) -> inspect.Parameter:
    """The flag as Typer reads it off a function."""
    repeatable = flag.kind == list[str]
    default = ... if flag.required else [] if repeatable else flag.default
    option = typer.Option(
        default,
        flag.option,
        help=flag.help,
        rich_help_panel=flag.group,
        show_default=bool(flag.shown_default),
        metavar="NAME" if repeatable else None,
    )
    kind = flag.kind | None if flag.default is None else flag.kind
    return inspect.Parameter(
        flag.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind
    )


# Typer reads a command's options off its signature: so the fields are told once, in EngineConfig.
_PARAMETERS = [_parameter(flag) for flag in flags()]
serve.__doc__ = _HELP
serve.__signature__ = inspect.Signature(_PARAMETERS)  # type: ignore[attr-defined]
serve.__annotations__ = {each.name: each.annotation for each in _PARAMETERS}
