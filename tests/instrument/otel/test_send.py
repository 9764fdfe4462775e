"""What a sender makes of each answer that a receiver may give."""

from __future__ import annotations

import base64
import socket
import threading
import time
from email.utils import formatdate

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from slotscope.instrument.otel.endpoint import (
    Endpoint,
    EndpointError,
    headers_of_environment,
    parse_headers,
)
from slotscope.instrument.otel.send import Reply, Retry, Sender, SendError

from .conftest import Receive

FAST = Retry(first_s=0.01, wait_max_s=0.05, elapsed_max_s=20)
BRIEF = Retry(first_s=0.01, wait_max_s=0.02, elapsed_max_s=0.1)


def request(name: str = "slot.copy") -> bytes:
    message = ExportTraceServiceRequest()
    message.resource_spans.add().scope_spans.add().spans.add(name=name)
    return message.SerializeToString()


def partial(rejected: int, message: str) -> bytes:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = message
    return response.SerializeToString()


def encoded(body: bytes) -> str:
    return base64.b64encode(body).decode()


def test_a_request_arrives_whole_with_its_headers(receive: Receive) -> None:
    receiver = receive()
    with Sender(Endpoint.of(receiver.url, {"x-api-key": "secret"})) as sender:
        assert sender.send(request()) == Reply()
    (seen,) = receiver.headers()
    assert seen["path"] == "/v1/traces"
    assert seen["Content-Type"] == "application/x-protobuf"
    assert seen["Content-Encoding"] == "gzip"
    assert seen["x-api-key"] == "secret"
    assert receiver.bodies() == [request()]


def test_the_connection_is_kept(receive: Receive) -> None:
    receiver = receive()
    with Sender(Endpoint.of(receiver.url)) as sender:
        for i in range(3):
            sender.send(request(str(i)))
    assert len({tuple(h["client"]) for h in receiver.headers()}) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_receiver_gets_the_same_request_again(receive: Receive, status: int) -> None:
    receiver = receive({"status": status}, {"status": status})
    with Sender(Endpoint.of(receiver.url), retry=FAST) as sender:
        assert sender.send(request()) == Reply()
        assert sender.retry_count == 2
    assert receiver.bodies() == [request()] * 3


def test_retry_after_in_seconds_is_kept_to(receive: Receive) -> None:
    receiver = receive({"status": 503, "headers": {"Retry-After": "1"}})
    began = time.monotonic()
    with Sender(Endpoint.of(receiver.url), retry=FAST) as sender:
        sender.send(request())
    assert time.monotonic() - began >= 1.0
    assert len(receiver.bodies()) == 2


def test_retry_after_as_a_date_is_kept_to(receive: Receive) -> None:
    at = time.time() + 2
    receiver = receive({"status": 429, "headers": {"Retry-After": formatdate(at, usegmt=True)}})
    with Sender(Endpoint.of(receiver.url), retry=FAST) as sender:
        sender.send(request())
    assert time.time() >= int(at)
    assert len(receiver.bodies()) == 2


def test_a_wait_longer_than_our_patience_is_not_begun(receive: Receive) -> None:
    receiver = receive({"status": 503, "headers": {"Retry-After": "3600"}})
    with (
        Sender(Endpoint.of(receiver.url), retry=FAST) as sender,
        pytest.raises(SendError, match="took no spans in 1 attempts") as caught,
    ):
        sender.send(request())
    assert caught.value.status == 503


def test_a_refusal_is_final_and_says_why(receive: Receive) -> None:
    # A google.rpc.Status: code 3, message "no such tenant".
    status = b"\x08\x03\x12\x0eno such tenant"
    receiver = receive({"status": 400, "body": encoded(status)})
    with (
        Sender(Endpoint.of(receiver.url), retry=FAST) as sender,
        pytest.raises(SendError, match="HTTP 400: no such tenant") as caught,
    ):
        sender.send(request())
    assert caught.value.status == 400
    assert len(receiver.bodies()) == 1


def test_a_refusal_in_words_is_shown(receive: Receive) -> None:
    answer = {"status": 401, "headers": {"Content-Type": "text/plain"}, "body": encoded(b"who?\n")}
    with (
        Sender(Endpoint.of(receive(answer).url)) as sender,
        pytest.raises(SendError, match=r"401: who\?. Pass the receiver's credentials"),
    ):
        sender.send(request())


@pytest.mark.parametrize("media", ["application/x-protobuf", "application/json"])
def test_partial_success_is_told_and_not_sent_again(receive: Receive, media: str) -> None:
    body = partial(3, "too old")
    if media == "application/json":
        body = b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}'
    receiver = receive({"status": 200, "headers": {"Content-Type": media}, "body": encoded(body)})
    with Sender(Endpoint.of(receiver.url), retry=FAST) as sender:
        assert sender.send(request()) == Reply(3, "too old")
    assert len(receiver.bodies()) == 1


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"<html>"])
def test_an_unreadable_yes_is_a_yes(receive: Receive, body: bytes) -> None:
    with Sender(Endpoint.of(receive({"status": 200, "body": encoded(body)}).url)) as sender:
        assert sender.send(request()) == Reply()


def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket() as taken:  # bound, not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        endpoint = Endpoint.of(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with (
            Sender(endpoint, retry=BRIEF) as sender,
            pytest.raises(SendError, match="ConnectionRefusedError") as caught,
        ):
            sender.send(request())
    assert endpoint.url in str(caught.value)
    assert caught.value.status is None
    assert sender.retry_count >= 1


def test_a_receiver_that_comes_back_gets_the_spans(receive: Receive) -> None:
    receiver = receive()
    with Sender(Endpoint.of(receiver.url), retry=FAST) as sender:
        sender.send(request("before"))
        receiver.stop()
        restart = threading.Timer(0.3, receiver.start)
        restart.start()
        sender.send(request("after"))
        restart.join()
    assert receiver.bodies()[-1] == request("after")


def test_stop_ends_a_wait() -> None:
    stop = threading.Event()
    stop.set()
    patient = Retry(first_s=3600, wait_max_s=3600, elapsed_max_s=7200)
    with (
        Sender(Endpoint.of("http://127.0.0.1:1"), retry=patient, stop=stop) as sender,
        pytest.raises(SendError, match="took no spans in 1 attempts"),
    ):
        sender.send(request())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:4318", "http://host:4318/v1/traces"),
        ("http://host:4318/", "http://host:4318/v1/traces"),
        ("https://host/otlp/v1/traces?t=1", "https://host:443/otlp/v1/traces?t=1"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ],
)
def test_a_base_url_gets_the_traces_path(url: str, shown: str) -> None:
    assert Endpoint.of(url).url == shown


@pytest.mark.parametrize(
    "url", ["", "localhost:4318", "ftp://host", "http://", "http://h:port", "http://h/a b\r\n"]
)
def test_what_is_no_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(EndpointError, match="http://localhost:4318"):
        Endpoint.of(url)


@pytest.mark.parametrize("headers", [{"a b": "c"}, {"": "c"}, {"a": "x\r\ny: z"}, {"a": "\u4e2d"}])
def test_headers_that_can_not_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(EndpointError, match="header"):
        Endpoint.of("http://h", headers)


def test_headers_are_read_from_the_command_line_and_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert parse_headers(["a=b=c", " d = e%20f "]) == {"a": "b=c", "d": "e f"}
    with pytest.raises(EndpointError, match="name=value"):
        parse_headers(["nothing"])
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=2")
    assert headers_of_environment() == {"a": "1", "b": "2"}
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "c=3")
    assert headers_of_environment() == {"c": "3"}
