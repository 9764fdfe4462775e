"""`slotscope export`: a trace's spans to an OpenTelemetry endpoint, or into a file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from slotscope.instrument.commands.options import TraceArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slotscope.instrument.trace import Trace

    from .delivery import ExportReport

MEMORY = "8GB"
"""Of a trace that is exported whole."""


class ExportError(ValueError):
    """An export without a place to go to."""


def export(
    trace: TraceArgument,
    otlp: Annotated[
        str, typer.Option(help="OTLP/HTTP receiver, such as http://localhost:4318.")
    ] = "",
    otlp_file: Annotated[
        Path | None, typer.Option(help="File of OTLP JSON lines to write; - is standard output.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="name=value, sent with each request; repeatable.")
    ] = None,
) -> None:
    """Send a trace's spans to an OpenTelemetry endpoint (Jaeger, Tempo, a Collector).

    Each slot event is a span below its request's; so are leases, requests and forwards. Ids are
    computed, so a second export adds nothing to what a backend has already. Headers are also taken
    from OTEL_EXPORTER_OTLP_HEADERS. Exit code 1: the receiver did not take every span.

        slotscope export traces/today --otlp http://localhost:4318

        slotscope export traces/today --otlp https://otlp.example.com --header api-key=secret

        slotscope export traces/today --otlp-file spans.jsonl
    """
    import slotscope

    if not otlp and otlp_file is None:
        raise ExportError(
            "There is nowhere to export to. Give --otlp with a receiver's address, or --otlp-file."
        )
    with slotscope.open(trace, time_limit_s=0, memory_limit=MEMORY) as opened:
        if otlp_file is not None:
            _write(opened, otlp_file)
        if otlp:
            report = _send(opened, otlp, header or [])
            typer.echo(_told(report, otlp))
            raise typer.Exit(0 if report.complete else 1)


def _write(trace: Trace, path: Path) -> None:
    from . import lines, spans

    trace.define_spans()
    con = trace.connection
    try:
        if str(path) == "-":
            lines.write(spans.read(con), typer.get_text_stream("stdout"))
            return
        with path.open("w") as file, _progress() as progress:
            count = lines.write(spans.read(con), file, progress)
    finally:
        con.close()
    typer.echo(f"{count} spans written to {path}.")


def _send(trace: Trace, url: str, pairs: list[str]) -> ExportReport:
    from .delivery import export as deliver
    from .endpoint import Endpoint, headers_of_environment, parse_headers

    endpoint = Endpoint.of(url, headers_of_environment() | parse_headers(pairs))
    with _progress() as progress:
        return deliver(trace, endpoint, progress=progress)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A line on stderr that counts spans; nothing where stderr is no terminal."""
    columns = SpinnerColumn(), TextColumn("{task.completed:,} spans"), TimeElapsedColumn()
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda count: bar.advance(task, count)


def _told(report: ExportReport, url: str) -> str:
    """What became of the spans, a line each."""
    lines = [
        f"{report.sent:,} spans sent to {url} in {report.requests} requests, "
        f"{report.bytes:,} bytes, {report.retries} retries."
    ]
    if report.rejected:
        lines.append(f"{report.rejected:,} spans rejected by the receiver.")
    if report.failed:
        lines.append(f"{report.failed:,} spans in requests that were refused.")
    return "\n".join([*lines, *report.messages])
