"""One OTLP/HTTP connection: compress, post, understand the answer, try again where that helps.

Which answers are tried again, and how `Retry-After` and partial success are read, follows the
OTLP specification 1.x, section OTLP/HTTP.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import ssl
import threading
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Status

if TYPE_CHECKING:
    from types import TracebackType

    from .endpoint import Endpoint

PROTOBUF = "application/x-protobuf"
RETRYABLE = frozenset({429, 502, 503, 504})
REPLY_BYTES_MAX = 1 << 20
MESSAGE_MAX = 300


class SendError(RuntimeError):
    """Spans that were not taken. The message says by whom, why, and what to do."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status  # of HTTP; None where no answer came


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How long to go on when a receiver is away. Waits double, with jitter."""

    first_s: float = 1.0
    wait_max_s: float = 30.0
    elapsed_max_s: float = 60.0

    def wait_s(self, attempt: int) -> float:
        """Seconds to wait after failure number `attempt`, from 0."""
        return min(self.first_s * 2.0**attempt, self.wait_max_s) * random.uniform(0.8, 1.2)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a receiver said to a request that it took."""

    rejected: int = 0  # spans
    message: str = ""


class Sender:
    """Posts serialized ExportTraceServiceRequests over one kept-alive connection.

    Not for two threads at once. `stop` ends a wait early, so that a process can leave.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retry: Retry | None = None,
        timeout_s: float = 10.0,
        stop: threading.Event | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.retry_count = 0
        self.bytes_sent = 0  # after compression, repeats included
        self._retry = retry or Retry()
        self.timeout_s = timeout_s
        self._stop = stop or threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._headers = {
            "Content-Type": PROTOBUF,
            "Content-Encoding": "gzip",
            "User-Agent": "slotscope",
            **dict(endpoint.headers),
        }

    def __enter__(self) -> Sender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, request: bytes) -> Reply:
        """Post one request until it is taken.

        Raises:
            SendError: it was refused for good, or nobody took it in time.
        """
        body = gzip.compress(request, compresslevel=1, mtime=0)
        deadline = time.monotonic() + self._retry.elapsed_max_s
        attempt = 0
        while True:
            status, answer, why, asked_s = self._post(body)
            if status is not None and 200 <= status < 300:
                return _reply(answer)
            if status is not None and status not in RETRYABLE:
                raise SendError(
                    f"{self.endpoint.url} refused spans with HTTP {status}: {why}. {_cure(status)}",
                    status=status,
                )
            wait_s = self._retry.wait_s(attempt) if asked_s is None else asked_s
            if time.monotonic() + wait_s > deadline or self._stop.wait(wait_s):
                raise SendError(
                    f"{self.endpoint.url} took no spans in {attempt + 1} attempts, last: {why}. "
                    "See that the receiver runs there, and export again: ids stay the same.",
                    status=status,
                )
            attempt += 1
            self.retry_count += 1

    def _post(self, body: bytes) -> tuple[int | None, bytes, str, float | None]:
        """(HTTP status or None, body if it is protobuf or JSON, reason, asked wait in seconds)."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            self.bytes_sent += len(body)
            self._connection.request("POST", self.endpoint.path, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read(REPLY_BYTES_MAX)
            if not response.isclosed():
                self.close()  # more than we care to read: the connection can't be used again
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return None, b"", f"{type(error).__name__}: {error}", None
        media = response.headers.get_content_type()
        if response.status >= 300:
            why = _error_text(answer, media) or response.reason
            return response.status, b"", why, _retry_after(response.headers.get("Retry-After"))
        return (
            response.status,
            answer if media == PROTOBUF else _translated(answer, media),
            "",
            None,
        )

    def _connect(self) -> http.client.HTTPConnection:
        host, port, timeout = self.endpoint.host, self.endpoint.port, self.timeout_s
        if self.endpoint.secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, port, timeout=timeout)


def _cure(status: int) -> str:
    if status in (401, 403):
        return "Pass the receiver's credentials as a header."
    if status in (404, 405):
        return "Give the whole URL of its OTLP/HTTP traces endpoint."
    return "The receiver's log says more. The same spans would be refused again."


def _reply(answer: bytes) -> Reply:
    """An answer that can't be read still came with a 2xx: the spans were taken."""
    try:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
    except DecodeError:
        return Reply()
    return Reply(partial.rejected_spans, partial.error_message[:MESSAGE_MAX])


def _translated(answer: bytes, media: str) -> bytes:
    """Some receivers answer protobuf with JSON. What says nothing of spans is an empty answer."""
    if media != "application/json":
        return b""
    try:
        partial = json.loads(answer)["partialSuccess"]
        response = ExportTraceServiceResponse()
        response.partial_success.rejected_spans = int(partial.get("rejectedSpans", 0))
        response.partial_success.error_message = str(partial.get("errorMessage", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return b""
    return response.SerializeToString()


def _error_text(answer: bytes, media: str) -> str:
    """Why a receiver refused, as far as it can be read."""
    if media == PROTOBUF:
        try:
            # The body is a google.rpc.Status. OTLP's own Status has its message under the same
            # number and skips the rest, so one more dependency is saved.
            return Status.FromString(answer).message[:MESSAGE_MAX]
        except DecodeError:
            return ""
    return " ".join(answer.decode("utf-8", "replace").split())[:MESSAGE_MAX]


def _retry_after(value: str | None) -> float | None:
    """Seconds that a receiver asks for, as a number or as a date; None if it asks for none."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except ValueError:
        return None
