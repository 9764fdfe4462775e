"""OpenAI's `/v1/completions`: text in, text out, at any server that counts cached tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .errors import ColdwarmError, Refused
from .server import Answer, Prompt, cached, check_length, flush
from .wire import Wire

_TEXT = (
    "the tide of a day in this old town was what they had seen and we all knew how far it would "
    "go to be there by night when one of us came home with more than any man could carry"
)
WORDS = _TEXT.split(" ")
_TRIES = 12  # corrections of a text's length; two or three do
_CURE = (
    "Start SGLang with --enable-cache-report, vLLM with --enable-prompt-tokens-details; other "
    "servers must report usage.prompt_tokens_details.cached_tokens."
)
_OPTIONS: tuple[dict[str, Any], ...] = (
    {"ignore_eos": True, "logprobs": 1},
    {"ignore_eos": True},
    {"logprobs": 1},
    {},
)
"""What is asked for beside OpenAI's own fields, the most telling first."""


@dataclass(frozen=True, slots=True)
class OpenAI:
    """A server that has `/v1/completions`."""

    wire: Wire
    model: str
    options: dict[str, Any]
    info: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def find(wire: Wire, info: dict[str, Any]) -> OpenAI:
        """The server's first model, asked with what it accepts.

        Raises:
            ColdwarmError: there is no model, or it accepts nothing that could be judged.
        """
        listed = wire.get("/v1/models")
        models = listed.get("data") if isinstance(listed, dict) else None
        if not models:
            raise ColdwarmError(
                f"{wire.url} has neither SGLang's /server_info nor OpenAI's /v1/models, so it "
                "can't be asked. Give the address of the inference server itself."
            )
        refusals = []
        for options in _OPTIONS:
            server = OpenAI(wire, models[0]["id"], options, info)
            try:
                server.ask(WORDS[0], 1, "")
            except Refused as error:
                refusals.append(error)
            else:
                return server
        raise ColdwarmError(f"The server refuses a plain completion: {refusals[-1]}")

    @property
    def speaks(self) -> str:
        """Which API is used."""
        told = "" if "logprobs" in self.options else ", no logprobs"
        return f"OpenAI's /v1/completions, text{told}"

    def prompt(self, tokens: int, seed: int) -> Prompt:
        """A text, cut until the server counts `tokens` tokens in it, or nearly so many."""
        draw = Random(seed)
        text = " ".join(draw.choice(WORDS) for _ in range(2 * tokens))  # a word: 1 token or more
        size, near = min(4 * tokens, len(text)), (tokens, "")
        for _ in range(_TRIES):
            count = self.ask(text[:size], 1, f"length-{draw.random()}").prompt_tokens
            near = min(near, (abs(count - tokens), text[:size]))
            if count == tokens:
                break
            step = round((tokens - count) * size / count)
            size = min(max(size + (step or (1 if tokens > count else -1)), 1), len(text))
        return near[1]

    def ask(self, prompt: Prompt, tokens: int, salt: str) -> Answer:
        """See `Server.ask`."""
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            **self.options,
            **({"cache_salt": salt} if salt else {}),
        }
        reply = self.wire.post("/v1/completions", body)
        choice, usage = reply["choices"][0], reply.get("usage") or {}
        logprobs = choice.get("logprobs") or {}
        check_length(usage["completion_tokens"], tokens)
        details = usage.get("prompt_tokens_details") or {}
        values = logprobs.get("token_logprobs") or []
        return Answer(
            request_id=reply["id"],
            tokens=tuple(logprobs.get("tokens") or choice["text"]),
            logprobs=tuple(math.nan if v is None else float(v) for v in values) or None,
            prompt_tokens=usage["prompt_tokens"],
            cached_tokens=cached(details.get("cached_tokens"), _CURE),
            text=choice["text"],
        )

    def extended(self, prompt: Prompt, answer: Answer) -> Prompt:
        """Text behind text. The server cuts it into tokens anew, so the seam may move a little."""
        return f"{prompt}{answer.text}"

    def flush(self) -> None:
        """Empty the server's cache."""
        flush(self.wire)
