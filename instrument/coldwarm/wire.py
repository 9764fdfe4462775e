"""Wire: JSON over HTTP, with errors that say what follows."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .errors import ColdwarmError, GridError, Refused

_CLOSED = (401, 403)  # no request will do
_SHOWN = 300
"""Characters of a server's error that are quoted."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One server's address, and what goes with each request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 600.0

    @staticmethod
    def to(url: str, headers: Mapping[str, str], timeout_s: float) -> Wire:
        """Raises GridError if `url` is no http or https address."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GridError(
                f"{url!r} is no address of a server. Give one such as http://localhost:30000."
            )
        return Wire(url.rstrip("/"), headers, timeout_s)

    def get(self, path: str) -> Any:
        """The JSON that lies there; None where the server has no such path, or no JSON there.

        Raises:
            ColdwarmError: the server doesn't answer.
        """
        try:
            return self._send(urllib.request.Request(self.url + path, headers=dict(self.headers)))
        except (Refused, ValueError):
            return None

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of the reply to a JSON body.

        Raises:
            Refused: a status of 4xx.
            ColdwarmError: the server doesn't answer, or fails.
        """
        headers = {**self.headers, "Content-Type": "application/json"}
        data = json.dumps(body).encode()
        try:
            return self._send(urllib.request.Request(self.url + path, data, headers))
        except ValueError as error:
            raise ColdwarmError(
                f"{self.url}{path} replied with something that is no JSON ({error}). "
                "Is this the address of the inference server itself?"
            ) from error

    def reached(self, path: str) -> bool:
        """POST without a body; False if the server says no."""
        request = urllib.request.Request(self.url + path, b"", dict(self.headers), method="POST")
        try:
            self._read(request)
        except Refused:
            return False
        return True

    def _send(self, request: urllib.request.Request) -> Any:
        return json.loads(self._read(request))

    def _read(self, request: urllib.request.Request) -> bytes:
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as reply:
                content: bytes = reply.read()
                return content
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode(errors="replace")[:_SHOWN]
            told = f"{request.full_url} replied {error.code}: {said}"
            if error.code in _CLOSED:
                told += " Give --header Authorization=Bearer%20KEY, with the server's key."
            refused = error.code < 500 and error.code not in _CLOSED
            raise (Refused if refused else ColdwarmError)(told) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ColdwarmError(
                f"{request.full_url} does not answer ({reason!r}). "
                "Look whether the server runs there, and into its log."
            ) from error
