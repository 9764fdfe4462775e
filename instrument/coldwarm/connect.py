"""Which API a server speaks."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from .errors import ColdwarmError
from .native import Native
from .openai import OpenAI
from .server import Server
from .wire import Wire

INFO_PATHS = ("/server_info", "/get_server_info")
"""SGLang's, and its older name."""


class Api(StrEnum):
    """How a server is asked."""

    AUTO = "auto"
    SGLANG = "sglang"
    OPENAI = "openai"


def connect(wire: Wire, api: Api) -> Server:
    """The server, asked for its configuration.

    Raises:
        ColdwarmError: it doesn't answer, or speaks neither API.
    """
    info = _info(wire)
    if api is Api.OPENAI or (api is Api.AUTO and info is None):
        return OpenAI.find(wire, info or {})
    server = Native(wire, info or {})
    try:
        server.ask(server.prompt(2, 0), 1, "")
    except KeyError as error:
        raise ColdwarmError(
            f"{wire.url}/generate replied without {error}, so it is not SGLang's. "
            "Give --api openai."
        ) from error
    return server


def _info(wire: Wire) -> dict[str, Any] | None:
    for path in INFO_PATHS:
        told = wire.get(path)
        if isinstance(told, dict) and "page_size" in told:
            return told
    return None
