"""Desk: takes prompts in, checks them, and knows what is under way."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HTTPRequest

from slotscope.engine.request import Request
from slotscope.engine.tokenizer import Tokenizer

from .backend import Engine
from .call import Call
from .errors import ApiError
from .generation import Generation, Wish
from .metrics import Metrics

PROMPTS_MAX = 1024
CLIENT_ID_CHARACTERS_MAX = 256
_GREEDY_BELOW = 1e-6  # SGLang's: colder than this, dividing by the temperature overflows

_TRACE_PARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt of a call."""

    prompt: tuple[int, ...]
    wish: Wish
    client_id: str = ""
    extra_key: str = ""  # cached prefixes are shared only under an equal one


class Desk:
    """One engine, its tokenizer, and the requests that clients wait for."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer | None) -> None:
        """Serve `engine`. Without a tokenizer only token ids are served."""
        self.engine = engine
        self.metrics = Metrics(engine)
        self._tokenizer = tokenizer
        self._under_way: dict[str, Generation] = {}

    @property
    def model_name(self) -> str:
        """The name that clients use."""
        config = self.engine.config
        return config.served_model_name or str(config.model_path)

    @property
    def is_awaited(self) -> bool:
        """Some client waits for an answer."""
        return bool(self._under_way)

    @property
    def has_text(self) -> bool:
        """The model has a tokenizer."""
        return self._tokenizer is not None

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer; ApiError if the model has none."""
        if self._tokenizer is None:
            raise ApiError(
                f"The model folder {self.engine.config.model_path} has no tokenizer.json, so this "
                "server reads and writes token ids only. Send input_ids to /generate, without stop "
                "strings."
            )
        return self._tokenizer

    async def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of a prompt. A long text takes a while, so the event loop goes on meanwhile."""
        return await run_in_threadpool(self.tokenizer.encode, text)

    def take(self, http: HTTPRequest, asks: Sequence[Ask]) -> Call:
        """Hand a call's prompts to the engine, all or none.

        Raises:
            ApiError: a prompt or a wish that can't be served.
            RequestError: the engine says so.
        """
        if not 1 <= len(asks) <= PROMPTS_MAX:
            raise ApiError(
                f"The call has {len(asks)} prompts, but must have 1 to {PROMPTS_MAX}. "
                "Split it, or send the one prompt that you meant."
            )
        checked = [self._checked(ask) for ask in asks]
        trace_parent = _trace_parent(http.headers.get("traceparent", ""))
        header_id = http.headers.get("x-request-id", "")
        call = Call(self.engine, self._over)
        try:
            for index, ask in enumerate(checked):
                request = Request(
                    request_id=uuid.uuid4().hex,
                    prompt=ask.prompt,
                    sampling=ask.wish.sampling,
                    sink=call.sink(index),
                    client_id=_client_id(ask.client_id or header_id),
                    trace_parent=trace_parent,
                    extra_key=ask.extra_key,
                )
                generation = Generation(request, ask.wish, self._tokenizer)
                call.submit(generation)
                self._under_way[request.request_id] = generation
        except Exception:
            call.close()
            raise
        return call

    def abort(self, name: str) -> list[str]:
        """End the requests that the server or the client calls `name`; returns their ids."""
        ids = [
            request_id
            for request_id, generation in self._under_way.items()
            if name in (request_id, generation.request.client_id)
        ]
        for request_id in ids:
            self.engine.abort(request_id)
        return ids

    def abort_all(self) -> list[str]:
        """End every request; returns their ids."""
        ids = list(self._under_way)
        for request_id in ids:
            self.engine.abort(request_id)
        return ids

    def _over(self, generation: Generation) -> None:
        self._under_way.pop(generation.request.request_id, None)
        self.metrics.generation_over(generation)

    def _checked(self, ask: Ask) -> Ask:
        """The ask as the engine gets it, its limit within the context."""
        self._check_ids("prompt", ask.prompt)
        self._check_ids("stop_token_ids", ask.wish.sampling.stop_token_ids)
        context, size = self.engine.context_max, len(ask.prompt)
        wanted = ask.wish.sampling.max_new_tokens if ask.wish.limit_given else 1
        if size == 0:
            raise ApiError(
                "The prompt is empty, so there is nothing to go on from. Send at least one token.",
                param="prompt",
            )
        if size + wanted > context:
            raise ApiError(
                f"The prompt has {size} tokens and at least {wanted} more are asked for: "
                f"{size + wanted}, but the context holds {context}. Shorten the prompt, or ask for "
                f"at most {max(context - size, 0)} tokens.",
                param="prompt" if size >= context else "max_new_tokens",
            )
        sampling = replace(
            ask.wish.sampling,
            max_new_tokens=min(ask.wish.sampling.max_new_tokens, context - size),
            top_k=min(ask.wish.sampling.top_k, self.engine.vocab_size),
            stop_token_ids=self._stop_token_ids(ask.wish),
        )
        if sampling.temperature < _GREEDY_BELOW:
            sampling = replace(sampling, temperature=0.0)
        return replace(ask, wish=replace(ask.wish, sampling=sampling))

    def _stop_token_ids(self, wish: Wish) -> tuple[int, ...]:
        """Those asked for, and those of stop strings that are special tokens."""
        named = [self.tokenizer.special_id(stop) for stop in wish.stop]
        return (*wish.sampling.stop_token_ids, *(token for token in named if token is not None))

    def _check_ids(self, name: str, ids: Sequence[int]) -> None:
        size = self.engine.vocab_size
        for at, token in enumerate(ids):
            if not 0 <= token < size:
                raise ApiError(
                    f"{name}[{at}] is {token}, but the model's token ids are 0 to {size - 1}. "
                    "Was the text encoded with another model's tokenizer?",
                    param=name,
                )


def _client_id(text: str) -> str:
    if len(text) > CLIENT_ID_CHARACTERS_MAX:
        raise ApiError(
            f"The request's id has {len(text)} characters, but may have "
            f"{CLIENT_ID_CHARACTERS_MAX}. Shorten rid or X-Request-Id.",
            param="rid",
        )
    return text


def _trace_parent(header: str) -> str:
    """The header if it is W3C's, else nothing: a malformed one begins a new trace, says W3C."""
    match = _TRACE_PARENT.fullmatch(header.strip())
    if match is None:
        return ""
    version, trace, span, more = match.groups()
    valid = int(trace, 16) and int(span, 16) and not (version == "00" and more)
    return header.strip() if valid else ""
