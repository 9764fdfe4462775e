"""`slotscope`: the command line. Exit codes: 0 fine, 1 found, 2 blind, 3 bad usage or bad trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from .commands.check import check
from .commands.coldwarm import coldwarm
from .commands.collect import collect
from .commands.diff import diff
from .commands.doctor import doctor
from .commands.pack import pack
from .commands.run import run
from .commands.slots import slots
from .commands.sql import sql

GROUP = "slotscope.commands"
"""Entry points by which other packages bring commands."""

BAD = 3
INTERRUPTED = 130

_HELP = """See every recurrent-state slot of a serving engine, and catch the corruption that
returns HTTP 200.

    slotscope demo                         a real bug, live, from nothing to the finding

    slotscope serve --trace traces/a       serve a hybrid model, each slot event traced

    slotscope run -- CMD                   the same for a server of your own, run by CMD

    slotscope check traces/a               what contradicts itself: exit 0 clean, 1 found, 2 blind

    slotscope sql traces/a "FROM leases"   ask yourself
"""

# Packages behind an extra, and what their commands do: a help page must not import torch.
_EXTRAS = {"slotscope.engine": "engine", "slotscope.dashboard": "dashboard"}
_LATER = {
    "demo": "Show a real bug, live: workload, wrong answer, finding, dashboard.",
    "serve": "Serve a hybrid model over HTTP, traced.",
    "replay": "Play a schedule of requests on the embedded engine.",
    "dashboard": "Look at a trace in the browser.",
    "export": "Send a trace's spans to an OpenTelemetry endpoint.",
}

# Typer brings its own click since 0.26 and depends on it before; this is ClickException in both.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


class CommandError(RuntimeError):
    """A command that is not installed. The message says how to get it."""


def build(wanted: str | None) -> typer.Typer:
    """The application, with only the `wanted` one of the other packages' commands loaded.

    Raises:
        CommandError: that one needs an extra that is not installed.
    """
    app = typer.Typer(
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_root)
    for command in (check, sql, slots, diff, coldwarm, doctor, run, collect, pack):
        app.command()(command)
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        command = _load(entry) if entry.name == wanted else _placeholder(entry)
        app.command(entry.name)(command)
    return app


def main() -> None:
    """Run, and exit. What the user can mend is said in one line; only a bug shows a traceback."""
    arguments = sys.argv[1:]
    wanted = next((a for a in arguments if not a.startswith("-")), None)
    try:
        sys.exit(build(wanted)(arguments, prog_name="slotscope", standalone_mode=False))
    except _UsageError as error:
        message = getattr(error, "format_message", error.__str__)() or "A command is needed"
        _fail(f"{message.rstrip('.')}. See slotscope {_page(arguments)}--help.")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # Whoever read us has left; Python would complain when it flushes.
        sys.exit(0)
    except Exception as error:
        if not _expected(error):
            raise
        _fail(str(error))


def _root() -> None:
    """Typer takes a single command for the whole application unless there is a callback."""


def _load(entry: EntryPoint) -> Callable[..., Any]:
    try:
        loaded: Callable[..., Any] = entry.load()
    except ModuleNotFoundError as error:
        package = ".".join(entry.module.split(".")[:2])
        extra = _EXTRAS.get(package)
        if extra is None or (error.name or "").startswith("slotscope"):
            raise CommandError(
                f"slotscope {entry.name} is not in this installation ({error.name} is missing). "
                "Install it again: pip install --force-reinstall slotscope"
            ) from error
        raise CommandError(
            f"slotscope {entry.name} needs {error.name}. "
            f"Install it: pip install 'slotscope[{extra}]'"
        ) from error
    return loaded


def _placeholder(entry: EntryPoint) -> Callable[..., Any]:
    """Stands on the help page for a command that this call does not run."""

    def later() -> None:
        raise AssertionError(entry.name)

    later.__doc__ = _LATER.get(entry.name, f"Comes from {entry.module}.")
    return later


def _expected(error: Exception) -> bool:
    """Our own errors name a cure; the system's and DuckDB's name a file or a query."""
    owner = type(error).__module__.partition(".")[0]
    return owner in {"slotscope", "duckdb", "_duckdb"} or isinstance(error, OSError)


def _page(arguments: list[str]) -> str:
    """Which help page tells of the command that was called."""
    known = {
        "check",
        "sql",
        "slots",
        "diff",
        "coldwarm",
        "doctor",
        "run",
        "collect",
        "pack",
        *_LATER,
    }
    return f"{arguments[0]} " if arguments and arguments[0] in known else ""


def _fail(message: str) -> None:
    sys.stderr.write(f"slotscope: {' '.join(message.split())}\n")
    sys.exit(BAD)
