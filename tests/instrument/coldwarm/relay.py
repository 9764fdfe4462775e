"""Relay: stands between a client and a server, and goes silent after so many requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


@dataclass(frozen=True)
class Relay:
    """Where it listens, and whether a request came that it did not pass on."""

    url: str
    spent: threading.Event = field(default_factory=threading.Event)


@contextmanager
def relaying(url: str, requests: int, *, hangs: bool = False) -> Iterator[Relay]:
    """Pass on `requests` POSTs. Each after these finds its connection cut, or waits for ever."""
    left, over = threading.Semaphore(requests), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(httpx.get(url + self.path, timeout=60))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if left.acquire(blocking=False):
                self._pass_on(httpx.post(url + self.path, content=body, timeout=60))
                return
            relay.spent.set()
            if hangs:
                over.wait()

        def _pass_on(self, reply: httpx.Response) -> None:
            self.send_response(reply.status_code)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        relay = Relay(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield relay
        finally:
            over.set()
            server.shutdown()
            thread.join()
