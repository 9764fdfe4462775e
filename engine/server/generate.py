"""`/generate`: SGLang's own way of asking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, Response

from .body import read_fields
from .call import Call
from .desk import Ask, Desk
from .errors import ApiError
from .fields import Fields, shown
from .generation import Finish, Generation, Wish
from .replies import EventStream, finished, finite
from .sampling import read_sampling_params

_INERT: Mapping[str, tuple[Any, ...]] = {
    "input_embeds": (),
    "image_data": (),
    "video_data": (),
    "audio_data": (),
    "modalities": ([],),
    "logprob_start_len": (-1,),
    "top_logprobs_num": (0,),
    "token_ids_logprob": (),
    "return_text_in_logprobs": (False,),
    "return_hidden_states": (False,),
    "log_metrics": (True, False),
    "background": (False,),
    "session_params": ({},),
    "lora_path": (),
    "custom_logit_processor": (),
    "priority": (),
}
"""Fields that SGLang has and this server doesn't act on, with the values that ask for nothing."""


async def generate(http: HTTPRequest) -> Response:
    """Text or token ids in, one or a list; the same out, whole or streamed."""
    desk: Desk = http.app.state.desk
    fields = await read_fields(http)
    prompts, is_list = await _read_prompts(desk, fields)
    stream = fields.flag("stream", default=False)
    with_logprobs = fields.flag("return_logprob", default=False)
    names = _read_names(fields, len(prompts), is_list=is_list)
    keys = _read_keys(fields, len(prompts), is_list=is_list)
    wishes = _read_wishes(fields, len(prompts), is_list=is_list)
    fields.inert(_INERT)
    fields.close()
    asks = [Ask(*one) for one in zip(prompts, wishes, names, keys, strict=True)]
    call = desk.take(http, asks)
    if stream:
        return EventStream(call, _events(desk, call, with_logprobs=with_logprobs, is_list=is_list))
    if not await finished(http, call):
        return Response(status_code=499)
    results = [_result(desk, g, with_logprobs=with_logprobs) for g in call.generations]
    return JSONResponse(results if is_list else results[0])


async def _events(
    desk: Desk, call: Call, *, with_logprobs: bool, is_list: bool
) -> AsyncIterator[dict[str, Any]]:
    """Each event holds all that a generation has so far, as SGLang's do by default."""
    async for index, _ in call.pieces():
        result = _result(desk, call.generations[index], with_logprobs=with_logprobs)
        yield result | {"index": index} if is_list else result


async def _read_prompts(desk: Desk, fields: Fields) -> tuple[list[tuple[int, ...]], bool]:
    """The prompts as token ids, and whether they came as a list."""
    text, ids = fields.take("text"), fields.take("input_ids")
    if (text is None) == (ids is None):
        raise ApiError(
            f"The body gives {'neither text nor' if text is None else 'both text and'} input_ids. "
            "Give one of the two.",
            param="text",
        )
    if ids is not None:
        if not isinstance(ids, list):
            raise fields.wrong("input_ids", ids, "a list of token ids, or a list of such lists")
        is_list = any(isinstance(entry, list) for entry in ids)
        return [_ids(fields, one) for one in (ids if is_list else [ids])], is_list
    texts = text if isinstance(text, list) else [text]
    return [await desk.encode(fields.as_text("text", one)) for one in texts], isinstance(text, list)


def _ids(fields: Fields, value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise fields.wrong("input_ids", value, "a list of token ids, as the others are")
    return tuple(fields.as_integer("input_ids", token) for token in value)


def _read_names(fields: Fields, count: int, *, is_list: bool) -> Sequence[str]:
    """The client's names for its requests; one name for a list is numbered, as SGLang does."""
    value = fields.take("rid")
    if value is None:
        return [""] * count
    if isinstance(value, list):
        _check_count("rid", value, count, is_list=is_list)
        return [fields.as_text("rid", name) for name in value]
    name = fields.as_text("rid", value)
    return [f"{name}_{index}" for index in range(count)] if is_list else [name]


def _read_keys(fields: Fields, count: int, *, is_list: bool) -> Sequence[str]:
    """`extra_key`: one for all prompts, or a list with one for each."""
    value = fields.take("extra_key")
    if not isinstance(value, list):
        return [fields.as_text("extra_key", value or "")] * count
    _check_count("extra_key", value, count, is_list=is_list)
    return [fields.as_text("extra_key", key) for key in value]


def _read_wishes(fields: Fields, count: int, *, is_list: bool) -> Sequence[Wish]:
    """One object for all prompts, or a list with one for each."""
    value = fields.take("sampling_params")
    if not isinstance(value, list):
        value = [{} if value is None else value] * count
    _check_count("sampling_params", value, count, is_list=is_list or len(value) == 1)
    for one in value:
        if not isinstance(one, dict):
            raise fields.wrong("sampling_params", one, "an object")
    return [read_sampling_params(one) for one in value]


def _check_count(name: str, values: list[Any], count: int, *, is_list: bool) -> None:
    if not is_list or len(values) != count:
        raise ApiError(
            f"{name} is a list of {len(values)} ({shown(values)}), but there "
            f"{'are' if is_list else 'is'} {count} {'prompts' if is_list else 'prompt, no list'}. "
            f"Give one {name} for each prompt.",
            param=name,
        )


def _result(desk: Desk, generation: Generation, *, with_logprobs: bool) -> dict[str, Any]:
    """SGLang's result object; `meta_info.id` is the client's name, `request_id` the server's."""
    request, usage = generation.request, generation.request.usage
    meta: dict[str, Any] = {
        "id": request.client_id or request.request_id,
        "request_id": request.request_id,
        "finish_reason": _finish_reason(generation, generation.finish),
        "prompt_tokens": len(request.prompt),
        "completion_tokens": len(generation.tokens),
        "cached_tokens": usage.cached_tokens,
        "num_retractions": usage.retractions,
    }
    if with_logprobs:
        pairs = zip(generation.logprobs, generation.tokens, strict=True)
        meta["output_token_logprobs"] = [[finite(value), token, None] for value, token in pairs]
    if generation.finish is not None:
        meta["e2e_latency"] = generation.latency_s
        if usage.accept_length is not None:
            meta["spec_accept_length"] = usage.accept_length
            meta["spec_verify_ct"] = usage.verify_count
    text = {"text": generation.text} if desk.has_text else {}
    return {**text, "output_ids": list(generation.tokens), "meta_info": meta}


def _finish_reason(generation: Generation, finish: Finish | None) -> dict[str, Any] | None:
    match finish:
        case None:
            return None
        case Finish("stop", matched):
            return {"type": "stop", "matched": matched}
        case Finish("length"):
            return {"type": "length", "length": generation.wish.sampling.max_new_tokens}
    return {"type": "abort", "message": "Aborted by /abort_request, or by the engine's end."}
