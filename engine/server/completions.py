"""`/v1/completions`: OpenAI's text in, text out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response

from .body import read_fields
from .desk import Ask, Desk
from .errors import ApiError
from .fields import Fields
from .generation import Finish
from .openai import INERT, Frame, read_head, read_limit, usage
from .replies import EventStream, finished, finite
from .sampling import read_wish

_TOKENS_DEFAULT = 16
_LOGPROBS_MAX = 1
_INERT: Mapping[str, tuple[Any, ...]] = {
    **INERT,
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
}


async def completions(http: HTTPRequest) -> Response:
    """One prompt or several, as text or token ids; one choice for each."""
    desk: Desk = http.app.state.desk
    desk.tokenizer  # noqa: B018 - the reply is text, so a model without a tokenizer ends here
    fields = await read_fields(http)
    head = read_head(http, fields)
    prompts = await _read_prompts(desk, fields)
    limit = read_limit(fields, "max_tokens")
    wish = read_wish(fields, limit=limit, limit_default=_TOKENS_DEFAULT)
    with_logprobs = _read_logprobs(fields)
    fields.inert(_INERT)
    fields.close()
    asks = [Ask(prompt, wish, head.client_id, head.extra_key) for prompt in prompts]
    call = desk.take(http, asks)
    frame = head.frame("text_completion", call)
    if head.stream:
        return EventStream(call, _events(desk, frame, with_logprobs=with_logprobs))
    if not await finished(http, call):
        return Response(status_code=499)
    choices = []
    for index, generation in enumerate(call.generations):
        logprobs = (
            _logprobs(desk, generation.tokens, generation.logprobs, offset=0)
            if with_logprobs
            else None
        )
        choices.append(_choice(index, generation.text, generation.finish, logprobs))
    return JSONResponse(frame.wrap(choices) | {"usage": usage(call.generations)})


async def _events(
    desk: Desk, frame: Frame, *, with_logprobs: bool
) -> AsyncIterator[dict[str, Any]]:
    offsets = [0] * len(frame.call.generations)
    async for index, piece in frame.call.pieces():
        logprobs = None
        if with_logprobs:
            logprobs = _logprobs(desk, piece.tokens, piece.logprobs, offset=offsets[index])
            offsets[index] += sum(len(token) for token in logprobs["tokens"])
        if piece.text or piece.finish or with_logprobs:
            yield frame.event(_choice(index, piece.text, piece.finish, logprobs))
    if frame.with_usage:
        yield frame.usage_event()


def _choice(
    index: int, text: str, finish: Finish | None, logprobs: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": finish.reason if finish else None,
        "matched_stop": finish.matched if finish else None,
    }


def _logprobs(
    desk: Desk, tokens: Sequence[int], logprobs: Sequence[float], *, offset: int
) -> dict[str, Any]:
    """OpenAI's older form. Alternatives aren't kept, so `top_logprobs` is null."""
    texts = [desk.tokenizer.decode([token], skip_special_tokens=False) for token in tokens]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [finite(value) for value in logprobs],
        "top_logprobs": None,
        "text_offset": offsets,
    }


def _read_logprobs(fields: Fields) -> bool:
    count = fields.integer("logprobs")
    if count is not None and not 0 <= count <= _LOGPROBS_MAX:
        raise ApiError(
            f"logprobs is {count}, but this server gives the chosen token's alone. "
            f"Set it to 0 or {_LOGPROBS_MAX}.",
            param="logprobs",
        )
    return count is not None


async def _read_prompts(desk: Desk, fields: Fields) -> list[tuple[int, ...]]:
    """`prompt`: a text, token ids, or a list of either."""
    value = fields.take("prompt")
    if value is None:
        raise ApiError("The body has no prompt. Give a text, or a list of them.", param="prompt")
    is_ids = isinstance(value, list) and all(type(token) is int for token in value) and value
    prompts = value if isinstance(value, list) and not is_ids else [value]
    return [await _read_prompt(desk, fields, prompt) for prompt in prompts]


async def _read_prompt(desk: Desk, fields: Fields, value: object) -> tuple[int, ...]:
    if isinstance(value, list):
        return tuple(fields.as_integer("prompt", token) for token in value)
    if not isinstance(value, str):
        raise fields.wrong("prompt", value, "a text, a list of token ids, or a list of either")
    return await desk.encode(fields.as_text("prompt", value))
