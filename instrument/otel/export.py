"""All spans of a trace to an OTLP/HTTP endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .encode import requests
from .send import Sender, SendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

SPANS_MAX = 2048
BYTES_MAX = 3 << 20
"""Of one request. Receivers commonly take 4 MiB."""

REFUSED = frozenset({400, 413, 422})
"""Statuses that speak of one request; any other would meet the next one too."""

MESSAGES_MAX = 20


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
        SendError: the receiver is away, or refuses whatever comes.
    """
    for count, body in requests(batches, spans_max=SPANS_MAX, bytes_max=BYTES_MAX):
        report.requests += 1
        try:
            reply = sender.send(body)
        except SendError as error:
            report.failed += count
            report.say(str(error))
            if error.status not in REFUSED:
                raise
        else:
            rejected = min(max(reply.rejected, 0), count)
            report.sent += count - rejected
            report.rejected += rejected
            report.say(reply.message)
        finally:
            report.retries, report.bytes = sender.retry_count, sender.bytes_sent
        progress(count)
