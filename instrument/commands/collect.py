"""`slotscope collect`: store a trace in DuckDB, in the foreground."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from .options import TraceArgument


def collect(
    trace: TraceArgument,
    linger: Annotated[
        float, typer.Option(help="Seconds to wait for new writers once the last one is gone.")
    ] = 0,
) -> None:
    """Store a trace's records in its live.duckdb, and end when there is nothing more to come.

    An engine starts this by itself. By hand it is of use after a crash of the whole machine, or
    to store an old trace again: remove live.duckdb first, the segments hold everything.

        slotscope collect traces/today
    """
    from slotscope.instrument.collector import Collector

    logging.basicConfig(format="%(message)s", level=logging.INFO)
    collector = Collector(trace.absolute(), linger_s=linger)
    collector.run()
    typer.echo(f"{collector.stored_count} events stored in {trace / 'live.duckdb'}.")
