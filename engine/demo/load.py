"""The load: clients that ask each prompt twice, and the same prompt of an emptied cache."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply of the server."""

    status: int
    request_id: str
    text: str
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Trial:
    """A prompt, asked, asked again, and asked of an empty cache."""

    prompt: str
    first: Answer
    again: Answer
    control: Answer

    @property
    def wrong(self) -> bool:
        """The cache changed the answer."""
        return self.again.text != self.control.text


def run_load(
    server: str, prompts: Sequence[str], tokens: int, clients: int, tick: Tick
) -> list[Trial]:
    """Ask everything; `tick` is called after each reply."""

    def twice(prompt: str) -> tuple[Answer, Answer]:
        answers = []
        for _ in range(2):
            answers.append(_ask(server, prompt, tokens))
            tick()
        return answers[0], answers[1]

    with ThreadPoolExecutor(clients) as pool:
        pairs = list(pool.map(twice, prompts))
    trials = []
    for prompt, (first, again) in zip(prompts, pairs, strict=True):
        _post(f"{server}/flush_cache", {})
        trials.append(Trial(prompt, first, again, _ask(server, prompt, tokens)))
        tick()
    return trials


def _ask(server: str, prompt: str, tokens: int) -> Answer:
    sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
    status, body = _post(f"{server}/generate", {"text": prompt, "sampling_params": sampling})
    reply = json.loads(body)
    meta = reply["meta_info"]
    return Answer(status, meta["id"], reply["text"], meta["cached_tokens"])


def _post(url: str, body: dict[str, object]) -> tuple[int, bytes]:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        return reply.status, reply.read()
