"""What a server may reply that is no answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from slotscope.instrument.coldwarm.connect import Api, connect
from slotscope.instrument.coldwarm.errors import ColdwarmError
from slotscope.instrument.coldwarm.wire import Wire


@contextmanager
def replying(status: int, body: bytes) -> Iterator[Wire]:
    """A server that always replies the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Wire.to(f"http://127.0.0.1:{server.server_port}/", {}, 60)
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"no key", "replied 401: no key Give --header Authorization"),
        (404, b"{}", "has neither SGLang's /server_info nor OpenAI's /v1/models"),
        (200, b"<html>", "has neither"),
        (503, b"loading", "replied 503: loading"),
        (200, b'{"page_size": 1}', "replied without 'meta_info', so it is not SGLang's"),
        (
            200,
            b'{"data": [{"id": "m"}], "id": "r", "choices": [{"text": "a"}],'
            b' "usage": {"prompt_tokens": 1, "completion_tokens": 1}}',
            "how many prompt tokens came from its cache.* Start SGLang with --enable-cache-report",
        ),
    ],
)
def test_what_is_no_answer_ends_it_with_a_cure(status: int, body: bytes, said: str) -> None:
    with replying(status, body) as wire, pytest.raises(ColdwarmError, match=said):
        connect(wire, Api.AUTO)
