"""`slotscope export`: a trace to an OpenTelemetry endpoint, or into files of other tools."""

from __future__ import annotations

import contextlib
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from slotscope.instrument.commands.options import TraceArgument
from slotscope.instrument.export import parquet, perfetto

from . import lines, spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slotscope.instrument.trace import Trace

    from .delivery import ExportReport

MEMORY = "8GB"
"""Of a trace that is exported whole."""


class Form(StrEnum):
    """What a file may be."""

    OTLP_JSON = "otlp-json"
    OTLP_PROTO = "otlp-proto"
    PARQUET = "parquet"
    PERFETTO = "perfetto"

    @property
    def noun(self) -> str:
        """What is counted."""
        return {Form.PARQUET: "events", Form.PERFETTO: "acts"}.get(self, "spans")


class ExportError(ValueError):
    """An export without a place to go to."""


def export(
    trace: TraceArgument,
    otlp: Annotated[
        str, typer.Option(help="OTLP/HTTP receiver, such as http://localhost:4318.")
    ] = "",
    to: Annotated[Form | None, typer.Option(help="Format of the file to write.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, - is standard output; of parquet, a new folder."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="name=value, sent with each request; repeatable.")
    ] = None,
) -> None:
    """Send a trace's spans to an OpenTelemetry endpoint (Jaeger, Tempo, ...), or write files.

    Each slot event is a span below its request's; so are leases, requests and forwards. Ids are
    computed, so a second export adds nothing to what a backend has already. Headers are also taken
    from OTEL_EXPORTER_OTLP_HEADERS. Exit code 1: the receiver did not take every span.

        slotscope export traces/today --otlp http://localhost:4318

        slotscope export traces/today --otlp https://otlp.example.com --header api-key=secret

        slotscope export traces/today --to otlp-json --out spans.jsonl

        slotscope export traces/today --to perfetto --out today.json

        slotscope export traces/today --to parquet --out today
    """
    import slotscope

    if not otlp and (to is None or out is None):
        raise ExportError(
            "There is nowhere to export to. Give --otlp with a receiver's address, or both --to "
            "and --out for a file."
        )
    with slotscope.open(trace, time_limit_s=0, memory_limit=MEMORY) as opened:
        if to is not None and out is not None:
            _write(opened, to, out)
        if otlp:
            report = _send(opened, otlp, header or [])
            typer.echo(_told(report, otlp))
            raise typer.Exit(0 if report.complete else 1)


def _write(trace: Trace, form: Form, path: Path) -> None:
    trace.define_spans()
    with contextlib.closing(trace.connection) as con, _progress(form.noun) as progress:
        if form is Form.PARQUET:
            count = parquet.write(con, path, progress)
        elif form is Form.OTLP_PROTO:
            with _opened(path, "wb") as file:
                count = lines.write_delimited(spans.read(con), file, progress)
        else:
            with _opened(path, "w") as file:
                count = (
                    perfetto.write(con, file, progress)
                    if form is Form.PERFETTO
                    else lines.write(spans.read(con), file, progress)
                )
    if str(path) != "-":
        typer.echo(f"{count} {form.noun} written to {path}.")


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[Any]:
    """A file, or standard output, which stays open."""
    if str(path) == "-":
        yield sys.stdout.buffer if "b" in mode else sys.stdout
    else:
        with path.open(mode) as file:
            yield file


def _send(trace: Trace, url: str, pairs: list[str]) -> ExportReport:
    from .delivery import export as deliver
    from .endpoint import Endpoint, headers_of_environment, parse_headers

    endpoint = Endpoint.of(url, headers_of_environment() | parse_headers(pairs))
    with _progress("spans") as progress:
        return deliver(trace, endpoint, progress=progress)


@contextlib.contextmanager
def _progress(noun: str) -> Iterator[Callable[[int], None]]:
    """A line on stderr that counts; nothing where stderr is no terminal."""
    columns = SpinnerColumn(), TextColumn(f"{{task.completed:,}} {noun}"), TimeElapsedColumn()
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
