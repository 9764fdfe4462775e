"""`slotscope doctor`: what is installed, what a trace can show, and what it can't."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from slotscope.instrument.trace import Trace

_PACKAGES = {
    "instrument": ("slotscope", "duckdb", "pyarrow", "numpy"),
    "engine": ("torch", "safetensors", "starlette", "uvicorn"),
    "gpu": ("triton",),
    "dashboard": ("streamlit", "altair"),
    "sglang": ("sglang",),
}

_HOOKS = """
SELECT process, name, live, string_agg(op, ', ' ORDER BY op) AS ops
FROM (SELECT process, name, op, arg_max(live, time_ns) AS live FROM hooks GROUP BY ALL)
GROUP BY ALL ORDER BY process, live, name
"""

_GAPS = """
SELECT process, writer, reason, op, sum(count)::BIGINT AS lost, any_value(detail) AS detail
FROM gaps GROUP BY ALL ORDER BY ALL
"""


def doctor(
    trace: Annotated[
        Path | None, typer.Argument(metavar="[TRACE]", help="Trace directory to look into.")
    ] = None,
) -> None:
    """Tell what is installed, and what the plugin would see of an SGLang beside it; of a trace,
    which hooks are live, what is lost, who is blind.

    slotscope doctor

    slotscope doctor traces/today
    """
    from rich.console import Console

    import slotscope

    console = Console()
    if trace is None:
        _installed(console)
        _sglang(console)
        return
    with slotscope.open(trace) as opened:
        _installed(console)
        _files(console, trace, opened)
        _tables(opened)
        _sight(console, opened)


def _installed(console: Console) -> None:
    console.print(f"Python {platform.python_version()} on {platform.platform()}")
    for extra, packages in _PACKAGES.items():
        console.print(f"{extra:<11}{', '.join(map(_versioned, packages))}", highlight=False)


def _sglang(console: Console) -> None:
    """Which of the plugin's hooks would be live in the SGLang that is installed. Imports it."""
    from slotscope.instrument.sglang import reach, release

    installed = release.installed()
    for line in reach.described(installed) if installed else ():
        console.print(f"           {line}", highlight=False, soft_wrap=True)


def _tables(trace: Trace) -> None:
    """Who took part, what they report, what they lost."""
    from .table import show

    for title, query in (
        ("Processes", "FROM processes"),
        ("Hooks", _HOOKS),
        ("Lost events", _GAPS),
    ):
        rows = trace.sql(query)
        typer.echo(f"\n{title}: {rows.num_rows or 'none'}")
        if rows.num_rows:
            show(rows)


def _versioned(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (absent)"


def _files(console: Console, directory: Path, trace: Trace) -> None:
    """Where the trace lies, how big it is, who collects it."""
    from slotscope.instrument import spawn

    if directory.is_file():
        console.print(f"\n{directory}: packed, {_mib(directory.stat().st_size)}.", highlight=False)
        return
    sizes = [f.stat().st_blocks * 512 for f in directory.iterdir() if f.is_file()]
    free = shutil.disk_usage(directory).free
    writable = "" if os.access(directory, os.W_OK) else ", which this user can't write"
    collector = "runs" if spawn.locked(directory) else "does not run"
    state = "growing" if trace.live else "ended"
    console.print(
        f"\n{directory}{writable}: {state}, {_mib(sum(sizes))} in {len(sizes)} files, "
        f"{_mib(free)} free; its collector {collector}.",
        highlight=False,
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def _sight(console: Console, trace: Trace) -> None:
    """Which detectors can't say clean of the trace, and why."""
    from slotscope.instrument import detectors, fold
    from slotscope.instrument.sight import Sight

    con = trace.connection
    fold.prepare(con)
    sight = Sight(con)
    console.print("\n[bold]Detectors[/bold]")
    for detector in detectors.load():
        spots = sight.blind_spots(detector)
        said = f"blind: {'; '.join(spots)}" if spots else "sees all that it needs"
        console.print(f"{detector.title:<16}{said}", highlight=False)
