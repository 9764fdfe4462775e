"""A real server on a real socket, in a thread of the test's process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from slotscope.engine.server.app import create_app
from slotscope.engine.server.backend import Engine
from slotscope.engine.server.listen import bind
from slotscope.engine.tokenizer import Tokenizer


@dataclass(frozen=True)
class Client:
    """Talks to the server."""

    http: httpx.Client
    address: tuple[str, int]

    def post(self, path: str, **body: Any) -> Any:
        """The JSON of a reply that is 200."""
        reply = self.http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def stream(self, path: str, **body: Any) -> list[Any]:
        """The events of a stream, `[DONE]` checked and left out."""
        with self.http.stream("POST", path, json={**body, "stream": True}) as reply:
            assert reply.status_code == 200
            assert reply.headers["content-type"].startswith("text/event-stream")
            lines = [line for line in reply.iter_lines() if line]
        assert all(line.startswith("data: ") for line in lines)
        assert lines[-1] == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]

    def error(self, path: str, status: int = 400, **body: Any) -> dict[str, Any]:
        """The error object of a reply with this status."""
        # Escaped, so that even a lone surrogate travels.
        reply = self.http.post(path, content=json.dumps(body))
        assert reply.status_code == status, reply.text
        error: dict[str, Any] = reply.json()["error"]
        return error

    def metric(self, line: str) -> float:
        """Value of one sample, such as `slotscope_slots{state="free"}`."""
        text = self.http.get("/metrics").text
        return next(float(one.split()[-1]) for one in text.splitlines() if one.startswith(line))


@contextmanager
def serving(engine: Engine, tokenizer: Tokenizer | None) -> Iterator[Client]:
    """Serve `engine` as long as the block lasts."""
    listener = bind("127.0.0.1", 0)
    listener.listen()  # connections wait in the queue until the server takes them
    config = uvicorn.Config(
        create_app(engine, tokenizer), log_level="critical", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    address = listener.getsockname()
    base = f"http://127.0.0.1:{address[1]}"
    try:
        with httpx.Client(base_url=base, verify=False, timeout=60) as http:
            yield Client(http, address)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
