"""What a survey asks of a server, whatever it speaks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import ColdwarmError, Refused
from .wire import Wire

Prompt = tuple[int, ...] | str
"""Token ids where the server takes and gives them, else text."""

FLUSH_TIMEOUT_S = 30.0  # a server refuses while it still retires the last answer
FLUSH_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply, as far as it matters here."""

    request_id: str  # as the server's trace knows it
    tokens: tuple[int | str, ...]  # ids, or texts where the server gives no ids
    logprobs: tuple[float, ...] | None  # natural logs, one for each token; None: not told
    prompt_tokens: int
    cached_tokens: int
    text: str = ""


class Server(Protocol):
    """A server under test. Its methods are called from several threads."""

    @property
    def speaks(self) -> str:
        """Which API is used, for people."""

    @property
    def info(self) -> dict[str, Any]:
        """What it tells of its configuration, by SGLang's names; may be empty."""

    def prompt(self, tokens: int, seed: int) -> Prompt:
        """A prompt of `tokens` tokens, or as near as text gets; the same for the same seed."""

    def ask(self, prompt: Prompt, tokens: int, salt: str) -> Answer:
        """The greedy answer of exactly `tokens` tokens, under a cache salt if it is not empty.

        Raises:
            Refused: this request can't be served as asked.
            ColdwarmError: the server is gone, or tells too little to be judged.
        """

    def extended(self, prompt: Prompt, answer: Answer) -> Prompt:
        """The prompt with its answer behind it."""

    def flush(self) -> None:
        """Empty the server's cache."""


def flush(wire: Wire) -> None:
    """POST /flush_cache until it is done.

    Raises:
        ColdwarmError: the server has no such path, or goes on refusing.
    """
    deadline_s = time.monotonic() + FLUSH_TIMEOUT_S
    while not wire.reached("/flush_cache"):
        if time.monotonic() > deadline_s:
            raise ColdwarmError(
                f"{wire.url}/flush_cache refused for {FLUSH_TIMEOUT_S:g} s, so nothing can be "
                "asked cold. It refuses while requests run: wait for an idle server, or leave "
                "--flush out, so that fresh cache salts are used."
            )
        time.sleep(FLUSH_POLL_S)


def check_length(came: int, wanted: int) -> None:
    """Raises Refused if an answer is shorter than was asked for."""
    if came < wanted:
        raise Refused(
            f"The server ended an answer after {came} of {wanted} tokens, so the request did not "
            "finish at its offset. It may not know ignore_eos, or its context may be full."
        )


def cached(counted: Any, cure: str) -> int:
    """The count of cached tokens that a reply tells; ColdwarmError if it tells none."""
    if not isinstance(counted, int):
        raise ColdwarmError(
            "The server does not say how many prompt tokens came from its cache, so a warm answer "
            f"can't be told from a cold one. {cure}"
        )
    return counted
