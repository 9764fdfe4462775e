"""All spans of a trace to an OTLP/HTTP endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from . import spans
from .encode import requests
from .endpoint import Endpoint
from .send import Retry, Sender, SendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import duckdb
    import pyarrow as pa

SPANS_MAX = 2048
BYTES_MAX = 3 << 20
"""Of one request. Receivers commonly take 4 MiB."""

REFUSED = frozenset({400, 413, 422})
"""Statuses that speak of one request; any other would meet the next one too."""

MESSAGES_MAX = 20


class HasSpans(Protocol):
    """An open trace."""

    def define_spans(self) -> None: ...

    @property
    def connection(self) -> duckdb.DuckDBPyConnection: ...


@dataclass(slots=True)
class ExportReport:
    """What became of the spans. `sent` were taken, `rejected` were not by a receiver that took
    the rest of their request, `failed` were in requests that were refused whole."""

    sent: int = 0
    rejected: int = 0
    failed: int = 0
    requests: int = 0
    retries: int = 0
    bytes: int = 0  # after compression
    messages: list[str] = field(default_factory=list)  # what receivers said, the first of each

    @property
    def complete(self) -> bool:
        """Every span was taken."""
        return not self.rejected and not self.failed

    def say(self, message: str) -> None:
        """Keep a message, once, and not without bound."""
        if message and message not in self.messages and len(self.messages) < MESSAGES_MAX:
            self.messages.append(message)


def send_batches(
    batches: Iterable[pa.RecordBatch],
    sender: Sender,
    report: ExportReport,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Send rows of the `spans` view and count in `report`; `progress` gets spans as they go.

    Raises:
        SendError: the receiver is away, or refuses whatever comes. The spans of that request are
            counted nowhere.
    """
    for count, body in requests(batches, spans_max=SPANS_MAX, bytes_max=BYTES_MAX):
        report.requests += 1
        try:
            reply = sender.send(body)
        except SendError as error:
            if error.status not in REFUSED:
                raise
            report.failed += count
            report.say(str(error))
        else:
            rejected = min(max(reply.rejected, 0), count)
            report.sent += count - rejected
            report.rejected += rejected
            report.say(reply.message)
        finally:
            report.retries, report.bytes = sender.retry_count, sender.bytes_sent
        progress(count)


def export(
    trace: HasSpans,
    endpoint: Endpoint | str,
    *,
    headers: Mapping[str, str] | None = None,
    query: str = "FROM spans",
    retry: Retry | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ExportReport:
    """Send all spans of a trace, open ones too. A second export sends the same ids.

    Args:
        trace: what `slotscope.open` returns. Its `time_limit_s` covers the whole export.
        endpoint: base URL of an OTLP/HTTP receiver, or the whole URL of its traces endpoint.
        headers: sent with each request, for example credentials.
        query: which rows of `spans`, all columns of each.
        progress: gets the number of spans of each request.

    Raises:
        EndpointError: `endpoint` is no URL.
        SendError: the receiver is away, or refuses whatever comes. What it had taken, it has.
    """
    where = endpoint if isinstance(endpoint, Endpoint) else Endpoint.of(endpoint, headers)
    report = ExportReport()
    trace.define_spans()
    con = trace.connection
    try:
        with Sender(where, retry=retry) as sender:
            send_batches(spans.read(con, query), sender, report, progress)
    finally:
        con.close()
    return report
