"""`slotscope` as users run it: commands, servers, and clients that keep a server busy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

COMMAND = (sys.executable, "-m", "slotscope")
PATIENCE_S = 120
"""For what another process brings about, on a machine that may be busy."""

FLAGS = (
    *("--dtype", "float64"),  # the same prompt gets the same answer, whatever was cached
    *("--context-length", "512"),
    *("--max-running-requests", "4"),
    *("--max-total-tokens", "4096"),
    *("--mamba-track-interval", "64"),
)


def run(
    *arguments: object, patience_s: float = PATIENCE_S, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command, run to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience_s,
        env=os.environ | environment,
    )


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for something that another process brings about."""
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"it has not come about: {what}"
        time.sleep(0.02)


@dataclass(frozen=True)
class Server:
    """A `slotscope serve` that is ready."""

    process: subprocess.Popen[str]
    url: str

    def generate(self, prompt: list[int], tokens: int, **headers: str) -> list[int]:
        """The greedy answer; the reply must be 200."""
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = {"input_ids": prompt, "sampling_params": sampling}
        reply = httpx.post(f"{self.url}/generate", json=body, headers=headers, timeout=PATIENCE_S)
        assert reply.status_code == 200, reply.text
        answer: list[int] = reply.json()["output_ids"]
        return answer

    def metric(self, name: str) -> float:
        """Value of one sample of /metrics."""
        text = httpx.get(f"{self.url}/metrics", timeout=PATIENCE_S).text
        return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    def end(self) -> None:
        """As Ctrl-C does; it must end well."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(folder: Path, trace: Path, *flags: str, **environment: str) -> Iterator[Server]:
    """A server of the model in `folder` that traces into `trace`; gone when the block ends."""
    line = [*COMMAND, "serve", "--model-path", str(folder), "--port", "0", "--trace", str(trace)]
    settings = os.environ | {"PYTHONUNBUFFERED": "1", "SLOTSCOPE_LINGER_S": "0.5"} | environment
    process = subprocess.Popen(
        [*line, *FLAGS, *flags], stdout=subprocess.PIPE, text=True, env=settings
    )
    assert process.stdout is not None
    try:
        ready = next((line for line in process.stdout if " is ready at " in line), None)
        assert ready is not None, f"it ended with {process.wait()} before it was ready"
        yield Server(process, ready.split(" at ")[1].strip())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@dataclass
class Clients:
    """Clients that ask and stream, each in a thread, until they are stopped or the server dies."""

    url: str
    seed: int
    count: int = 4
    answers: dict[tuple[int, ...], set[tuple[int, ...]]] = field(default_factory=dict)
    pieces: int = 0  # of all streams, nearly
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(Random(self.seed * 100 + at),))
            for at in range(self.count)
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let each end its answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def stream(self, pieces: int) -> None:
        """Wait until so many more pieces have come."""
        goal = self.pieces + pieces
        until(lambda: self.pieces >= goal or bool(self.failures), f"{goal} pieces of streams")

    def _run(self, draw: Random) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=PATIENCE_S) as http:
                while not self._stop.is_set():
                    self._ask(http, draw)
        except httpx.HTTPError as error:
            with self._lock:
                self.failures.append(repr(error))

    def _ask(self, http: httpx.Client, draw: Random) -> None:
        """One of a few prompts, so that many share prefixes; one client in four leaves early."""
        document = Random(draw.randrange(3))
        prompt = [document.randrange(1, 250) for _ in range(draw.choice((60, 100, 128, 150)))]
        leaves_after = draw.randrange(12) if draw.random() < 0.25 else None
        sampling = {"max_new_tokens": 24, "temperature": 0, "ignore_eos": True}
        body = {"input_ids": prompt, "sampling_params": sampling, "stream": True}
        with http.stream("POST", "/generate", json=body) as reply:
            if reply.status_code != 200:
                raise httpx.HTTPError(f"{reply.status_code}: {reply.read()!r}")
            lines = (line for line in reply.iter_lines() if line)
            for at, line in enumerate(lines):
                self.pieces += 1
                if at == leaves_after:
                    return
                if line != "data: [DONE]":
                    last = json.loads(line.removeprefix("data: "))
        with self._lock:
            self.answers.setdefault(tuple(prompt), set()).add(tuple(last["output_ids"]))
