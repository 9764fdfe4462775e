"""The body of a call: bounded, and a JSON object."""

from __future__ import annotations

import json
from typing import NoReturn

from starlette.requests import Request

from .errors import ApiError
from .fields import Fields, shown

BODY_BYTES_MAX = 16 * 1024 * 1024


async def read_fields(http: Request) -> Fields:
    """The call's JSON object.

    Raises:
        ApiError: the body is too long (413), no JSON, or no object (400).
    """
    body = await _read(http, BODY_BYTES_MAX)
    try:
        value = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The body is no JSON: {error}. Send one JSON object in UTF-8.") from error
    if not isinstance(value, dict):
        raise ApiError(f"The body is {shown(value)}, but must be a JSON object.")
    return Fields(value)


async def _read(http: Request, bytes_max: int) -> bytes:
    declared = http.headers.get("content-length", "0")
    chunks, size = [], int(declared) if declared.isdigit() else 0
    if size <= bytes_max:
        size = 0
        async for chunk in http.stream():
            size += len(chunk)
            if size > bytes_max:
                break
            chunks.append(chunk)
    if size > bytes_max:
        raise ApiError(
            f"The body has {size} bytes or more, but the server reads at most {bytes_max}. "
            "Send fewer prompts in one call.",
            status=413,
        )
    return b"".join(chunks)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
