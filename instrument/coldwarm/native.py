"""SGLang's own API, which the embedded engine speaks too: token ids in, token ids out."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .errors import Refused
from .server import Answer, Prompt, cached, check_length, flush
from .wire import Wire

TOKEN_IDS = range(32, 127)
"""Prompts are made of these. Every vocabulary has them, and none of them is special in common
ones: they are printable ASCII for models of bytes, and single characters for BPE."""


@dataclass(frozen=True, slots=True)
class Native:
    """A server that has `/generate`."""

    wire: Wire
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def speaks(self) -> str:
        """Which API is used."""
        return "SGLang's /generate, token ids"

    def prompt(self, tokens: int, seed: int) -> Prompt:
        """Token ids without structure."""
        draw = Random(seed)
        return tuple(draw.choice(TOKEN_IDS) for _ in range(tokens))

    def ask(self, prompt: Prompt, tokens: int, salt: str) -> Answer:
        """See `Server.ask`."""
        body = {
            "input_ids": list(prompt),
            "sampling_params": {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True},
            "return_logprob": True,
            "rid": f"coldwarm-{uuid.uuid4().hex}",
            **({"extra_key": salt} if salt else {}),
        }
        meta = (reply := self.wire.post("/generate", body))["meta_info"]
        if (reason := meta.get("finish_reason")) and reason.get("type") == "abort":
            raise Refused(f"The server aborted a request: {reason.get('message')}")
        pairs = meta.get("output_token_logprobs") or []
        ids = reply.get("output_ids") or [pair[1] for pair in pairs]
        check_length(len(ids), tokens)
        return Answer(
            # The embedded engine names requests itself, and keeps the client's name beside it.
            request_id=meta.get("request_id") or meta["id"],
            tokens=tuple(ids),
            logprobs=tuple(math.nan if p[0] is None else float(p[0]) for p in pairs) or None,
            prompt_tokens=meta["prompt_tokens"],
            cached_tokens=cached(meta.get("cached_tokens"), "Ask a newer release of the server."),
        )

    def extended(self, prompt: Prompt, answer: Answer) -> Prompt:
        """Ids behind ids."""
        ids = (*prompt, *answer.tokens)
        return tuple(int(token) for token in ids)

    def flush(self) -> None:
        """Empty the server's cache."""
        flush(self.wire)
