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
    roll_events: Annotated[
        int, typer.Option(min=1, help="Events in live.duckdb before they are sealed.")
    ] = 2_000_000,
    roll_minutes: Annotated[
        float, typer.Option(min=0.01, help="Age of the earliest of them before they are sealed.")
    ] = 60,
) -> None:
    """Store a trace's records in its live.duckdb, and end when there is nothing more to come.

    An engine starts this by itself. By hand it is of use after a crash of the whole machine, or
    to store an old trace again: remove live.duckdb first, generations and segments hold everything.

        slotscope collect traces/today

    What it stores is sealed now and then into gen-000000.duckdb and so on, files that never change
    again; the segments that they hold are removed. The variables SLOTSCOPE_ROLL_EVENTS and
    SLOTSCOPE_ROLL_MINUTES say when to a collector that an engine starts.

    Spans can go to an OpenTelemetry endpoint meanwhile; the variable SLOTSCOPE_OTLP asks the same
    of the collector that an engine starts. `slotscope export` sends a whole trace.

        slotscope collect traces/today --linger 600 --otlp http://localhost:4318
    """
    from slotscope.instrument.collector import Collector
    from slotscope.instrument.otel.endpoint import Endpoint, headers_of_environment
    from slotscope.instrument.sealed.sealer import Limits

    logging.basicConfig(format="%(message)s", level=logging.INFO)
    endpoint = Endpoint.of(otlp, headers_of_environment()) if otlp else None
    limits = Limits(roll_events, roll_minutes)
    collector = Collector(trace.absolute(), linger_s=linger, otlp=endpoint, limits=limits)
    collector.run()
    typer.echo(f"{collector.stored_count} events stored in {trace / 'live.duckdb'}.")
