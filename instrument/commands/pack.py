"""`slotscope pack`: a trace as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import TraceArgument


def pack(
    trace: TraceArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
) -> None:
    """Make one portable file of a trace, to keep it or to hand it on.

    Every command takes the file in the place of a trace directory. It holds all that the directory
    tells, as it is now; the trace may still grow. It is a DuckDB file, sorted by slot.

        slotscope pack traces/today today.duckdb

        slotscope check today.duckdb
    """
    import slotscope
    from slotscope.instrument.sealed.pack import pack as write

    with slotscope.open(trace, time_limit_s=0) as opened:
        count = write(opened, out)
    typer.echo(f"{count:,} events, {out.stat().st_size:,} bytes in {out}.")
