"""`slotscope dashboard TRACE`: serve the pages on this machine, and open them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

import slotscope
from slotscope.instrument.schema import SchemaError
from slotscope.instrument.trace import TraceError

ADDRESS = "127.0.0.1"
PORT = 8501
"""Taken where it's free, so that links stay good; else any free one."""

APP = Path(__file__).with_name("app.py")
BAD_TRACE = 3
"""Exit code for a trace that can't be read, as in the other commands."""


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback address."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((ADDRESS, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """PORT, or where it's taken some other that is free."""
    if is_free(PORT):
        return PORT
    with socket.socket() as trial:
        trial.bind((ADDRESS, 0))
        return int(trial.getsockname()[1])


def arguments(trace: Path, port: int, *, browser: bool) -> list[str]:
    """The server's command line. What must hold for safety is said here, not left to a file."""
    options = {
        "server.address": ADDRESS,
        "server.port": port,
        "server.headless": "false" if browser else "true",
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": ADDRESS,
        "logger.hideWelcomeMessage": "true",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags, "--", str(trace)]


def dashboard(
    trace: Annotated[Path, typer.Argument(help="Trace directory of a running or ended engine.")],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Look at a trace in the browser: findings, life lines of slots, SQL.

    Read-only, and bound to 127.0.0.1. Stop it with Ctrl-C.

        slotscope dashboard traces/today

        slotscope dashboard traces/today --port 9000 --no-browser
    """
    try:
        slotscope.open(trace).close()
    except (TraceError, SchemaError) as error:
        typer.echo(f"slotscope: {error}", err=True)
        raise typer.Exit(BAD_TRACE) from None
    if port and not is_free(port):
        typer.echo(
            f"slotscope: port {port} of {ADDRESS} is taken; leave --port out to get a free one.",
            err=True,
        )
        raise typer.Exit(BAD_TRACE)
    port = port or free_port()
    typer.echo(f"slotscope dashboard: http://{ADDRESS}:{port}")
    sys.stdout.flush()
    # The server takes this process's place, so that signals and the exit code are its own.
    line = arguments(trace.resolve(), port, browser=browser)
    os.execv(line[0], line)
