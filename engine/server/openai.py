"""What OpenAI's two endpoints share: fields, usage, and the frame around choices."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request as HTTPRequest

from .call import Call
from .desk import Desk
from .errors import ApiError
from .fields import Fields, shown
from .generation import Generation

INERT: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "presence_penalty": (0, 0.0),
    "frequency_penalty": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "min_p": (0, 0.0),
    "min_tokens": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "no_stop_trim": (False,),
    "lora_path": (),
    "session_params": ({},),
}
"""Fields of both endpoints that this server doesn't do, with the values that ask for nothing."""

_LABELS = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key")


@dataclass(frozen=True, slots=True)
class Frame:
    """What every object of one reply has in common."""

    kind: str
    name: str  # of the model, as the client wrote it
    call: Call
    stream: bool
    with_usage: bool  # a stream ends with an event that has the usage
    created_s: int

    def wrap(self, choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """An object with these choices. The id is the server's id of the first request."""
        return {
            "id": self.call.generations[0].request.request_id,
            "object": self.kind,
            "created": self.created_s,
            "model": self.name,
            "choices": list(choices),
        }

    def event(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """An event of a stream. `usage` is there, empty, if the client waits for it."""
        return self.wrap([choice]) | ({"usage": None} if self.with_usage else {})

    def usage_event(self) -> dict[str, Any]:
        """The event after the last choice."""
        return self.wrap([]) | {"usage": usage(self.call.generations)}


@dataclass(frozen=True, slots=True)
class Head:
    """The fields that don't shape the generation."""

    name: str
    stream: bool
    with_usage: bool
    client_id: str
    extra_key: str

    def frame(self, kind: str, call: Call) -> Frame:
        """The frame of the reply to `call`."""
        return Frame(kind, self.name, call, self.stream, self.with_usage, int(time.time()))


def read_head(http: HTTPRequest, fields: Fields) -> Head:
    """Fields that both endpoints have, labels that the server ignores among them."""
    desk: Desk = http.app.state.desk
    for name in _LABELS:
        fields.take(name)
    stream = fields.flag("stream", default=False)
    options = Fields(fields.mapping("stream_options"), "stream_options")
    with_usage = options.flag("include_usage", default=False)
    options.close()
    return Head(
        _model(desk, fields),
        stream,
        stream and with_usage,
        client_id=fields.text("rid") or "",
        extra_key=(fields.text("cache_salt") or "") + (fields.text("extra_key") or ""),
    )


def read_limit(fields: Fields, *names: str) -> int | None:
    """The most tokens to generate, under the first of the names that is given."""
    values = [(name, fields.integer(name)) for name in names]
    for name, value in values:
        if value is not None and value < 1:
            raise fields.wrong(name, value, "at least 1")
    return next((value for _, value in values if value is not None), None)


def usage(generations: Sequence[Generation]) -> dict[str, Any]:
    """OpenAI's usage object, over all generations of a call."""
    prompt = sum(len(g.request.prompt) for g in generations)
    completion = sum(len(g.tokens) for g in generations)
    cached = sum(g.request.usage.cached_tokens for g in generations)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _model(desk: Desk, fields: Fields) -> str:
    """A call for another model would get an answer that it doesn't want."""
    name = fields.text("model")
    if name is None or name in ("", "default", desk.model_name, str(desk.engine.config.model_path)):
        return name or desk.model_name
    raise ApiError(
        f"This server has no model {shown(name)}. Ask for {desk.model_name!r}, or leave model out.",
        status=404,
        param="model",
    )
