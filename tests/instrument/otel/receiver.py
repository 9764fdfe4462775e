"""A real OTLP/HTTP receiver for tests, a process of its own.

    python receiver.py DIRECTORY PORT < answers.json

`answers` is a list of {status, headers, body (base64)}: what to answer to the first requests. What
comes later is taken. Each body lands in DIRECTORY as N.pb, uncompressed, in the order of arrival;
its headers as N.json. The port is printed
first; 0 asks for a free one. Numbers go on where an earlier receiver in DIRECTORY stopped.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver(ThreadingHTTPServer):
    """Counts what comes and answers by script."""

    def __init__(self, directory: Path, port: int, answers: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.directory, self.answers = directory, answers
        self.count, self.lock = len(list(directory.glob("*.pb"))), Lock()


class Handler(BaseHTTPRequestHandler):
    """One request: parsed in full, since only a valid message counts as received."""

    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
        ExportTraceServiceRequest.FromString(body)
        with self.server.lock:
            number = self.server.count
            self.server.count += 1
        seen = {"path": self.path, "client": self.client_address, **dict(self.headers)}
        (self.server.directory / f"{number:04}.json").write_text(json.dumps(seen))
        (self.server.directory / f"{number:04}.pb").write_bytes(body)
        scripted = number < len(self.server.answers)
        self.answer(self.server.answers[number] if scripted else {"status": 200})

    def answer(self, answer: dict[str, Any]) -> None:
        body = base64.b64decode(answer.get("body", ""))
        self.send_response(answer["status"])
        headers = {"Content-Type": "application/x-protobuf", **answer.get("headers", {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read files, not the log."""


if __name__ == "__main__":
    server = Receiver(Path(sys.argv[1]), int(sys.argv[2]), json.load(sys.stdin))
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
