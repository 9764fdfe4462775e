"""`/v1/chat/completions`: OpenAI's conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response

from slotscope.engine.tokenizer import TokenizerError

from .body import read_fields
from .desk import Ask, Desk
from .errors import ApiError
from .fields import Fields
from .generation import Finish
from .openai import INERT, Frame, read_head, read_limit, usage
from .replies import EventStream, finished, finite
from .sampling import read_wish

_INERT: Mapping[str, tuple[Any, ...]] = {
    **INERT,
    "top_logprobs": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": (),
    "verbosity": (),
    "web_search_options": (),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "separate_reasoning": (True, False),
    "stream_reasoning": (True, False),
}


async def chat_completions(http: HTTPRequest) -> Response:
    """A conversation in, the assistant's next message out."""
    desk: Desk = http.app.state.desk
    fields = await read_fields(http)
    head = read_head(http, fields)
    messages = _read_messages(fields)
    options = fields.mapping("chat_template_kwargs")
    limit = read_limit(fields, "max_completion_tokens", "max_tokens")
    wish = read_wish(fields, limit=limit, limit_default=desk.engine.context_max)
    with_logprobs = fields.flag("logprobs", default=False)
    fields.inert(_INERT)
    fields.close()
    try:
        prompt = await run_in_threadpool(desk.tokenizer.chat, messages, options)
    except TokenizerError as error:
        raise ApiError(str(error), param="messages") from error
    call = desk.take(http, [Ask(prompt, wish, head.client_id, head.extra_key)])
    if head.stream:
        frame = head.frame("chat.completion.chunk", call)
        return EventStream(call, _events(desk, frame, with_logprobs=with_logprobs))
    if not await finished(http, call):
        return Response(status_code=499)
    generation = call.generations[0]
    logprobs = _logprobs(desk, generation.tokens, generation.logprobs) if with_logprobs else None
    message = {"role": "assistant", "content": generation.text}
    choice = _choice({"message": message}, generation.finish, logprobs)
    frame = head.frame("chat.completion", call)
    return JSONResponse(frame.wrap([choice]) | {"usage": usage(call.generations)})


async def _events(
    desk: Desk, frame: Frame, *, with_logprobs: bool
) -> AsyncIterator[dict[str, Any]]:
    """The role first, then the text as it comes, the reason why it ended last."""
    yield frame.event(_choice({"delta": {"role": "assistant", "content": ""}}, None, None))
    async for _, piece in frame.call.pieces():
        logprobs = _logprobs(desk, piece.tokens, piece.logprobs) if with_logprobs else None
        if piece.text or with_logprobs:
            yield frame.event(_choice({"delta": {"content": piece.text}}, None, logprobs))
        if piece.finish:
            yield frame.event(_choice({"delta": {}}, piece.finish, None))
    if frame.with_usage:
        yield frame.usage_event()


def _choice(
    said: Mapping[str, Any], finish: Finish | None, logprobs: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "index": 0,
        **said,
        "logprobs": logprobs,
        "finish_reason": finish.reason if finish else None,
        "matched_stop": finish.matched if finish else None,
    }


def _logprobs(desk: Desk, tokens: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """OpenAI's newer form. A token that is a part of a character has no bytes to show."""
    content = []
    for token, value in zip(tokens, logprobs, strict=True):
        text = desk.tokenizer.decode([token], skip_special_tokens=False)
        whole = "\N{REPLACEMENT CHARACTER}" not in text
        content.append(
            {
                "token": text,
                "bytes": list(text.encode()) if whole else None,
                "logprob": finite(value),
                "top_logprobs": [],
            }
        )
    return {"content": content}


def _read_messages(fields: Fields) -> list[dict[str, Any]]:
    """The conversation, each content as one text. What else a message has goes to the template."""
    value = fields.take("messages")
    if not isinstance(value, list) or not value:
        raise fields.wrong("messages", value, "a list of at least one message")
    return [_read_message(f"messages[{at}]", message) for at, message in enumerate(value)]


def _read_message(place: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Fields({}).wrong(place, value, "an object with role and content")
    fields = Fields(value, place)
    role = fields.text("role")
    if not role:
        raise fields.wrong("role", role, 'a name such as "user" or "assistant"')
    content = fields.take("content")
    if isinstance(content, list):
        content = "".join(_read_part(f"{place}.content[{at}]", p) for at, p in enumerate(content))
    elif content is not None:
        content = fields.as_text("content", content)
    return {**value, "role": role, "content": content or ""}


def _read_part(place: str, value: object) -> str:
    if not isinstance(value, dict) or value.get("type") != "text":
        raise Fields({}).wrong(place, value, 'a part of type "text": this model reads nothing else')
    fields = Fields(value, place)
    text = fields.text("text")
    if text is None:
        raise fields.wrong("text", None, "a string")
    return text
