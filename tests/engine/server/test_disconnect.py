"""A client that leaves ends its requests: nobody reads what they would still say."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.engine.server.parrot import Parrot
from tests.engine.server.serving import Client


@pytest.mark.parametrize("path", ["/generate", "/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_aborts(
    client: Client, parrot: Parrot, path: str, stream: bool
) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "/generate": {"text": ["a", "b"]},
        "/v1/completions": {"prompt": ["a", "b"]},
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}]},
    }
    body = json.dumps(bodies[path] | {"stream": stream}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    expected = 1 if "chat" in path else 2
    parrot.pause()
    with socket.create_connection(client.address) as raw:
        raw.sendall(head.encode() + body)
        parrot.wait_until_asked(expected)
    parrot.wait_until_idle()  # it is paused, so only an abort ends a request
    assert sorted(parrot.aborted) == sorted(request.request_id for request in parrot.asked)
    parrot.go_on()
    assert client.post("/generate", text="a", sampling_params={"max_new_tokens": 1})["text"] == "a"
    assert client.metric('slotscope_requests_total{outcome="disconnected"}') == expected


def test_a_reader_that_leaves_in_mid_stream_aborts(client: Client, parrot: Parrot) -> None:
    body = json.dumps({"text": "ab", "stream": True, "sampling_params": {"max_new_tokens": 500}})
    head = f"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    parrot.pause()
    with socket.create_connection(client.address) as raw:
        raw.sendall((head + body).encode())
        parrot.wait_until_asked(1)
        parrot.say_once()
        received = b""
        while b"data: " not in received:
            received += raw.recv(4096)
    parrot.wait_until_idle()
    assert parrot.aborted == [parrot.asked[0].request_id]
