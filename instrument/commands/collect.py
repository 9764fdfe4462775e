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
    otlp: Annotated[str, typer.Option(help="OTLP/HTTP receiver that gets spans as they end.")] = "",
) -> None:
    """Store a trace's records in its live.duckdb, and end when there is nothing more to come.

    An engine starts this by itself. By hand it is of use after a crash of the whole machine, or
    to store an old trace again: remove live.duckdb first, the segments hold everything.

        slotscope collect traces/today

    Spans can go to an OpenTelemetry endpoint meanwhile; the variable SLOTSCOPE_OTLP asks the same
    of the collector that an engine starts. `slotscope export` sends a whole trace.

        slotscope collect traces/today --linger 600 --otlp http://localhost:4318
    """
    from slotscope.instrument.collector import Collector
    from slotscope.instrument.otel.endpoint import Endpoint, headers_of_environment

    logging.basicConfig(format="%(message)s", level=logging.INFO)
    endpoint = Endpoint.of(otlp, headers_of_environment()) if otlp else None
    collector = Collector(trace.absolute(), linger_s=linger, otlp=endpoint)
    collector.run()
    typer.echo(f"{collector.stored_count} events stored in {trace / 'live.duckdb'}.")
