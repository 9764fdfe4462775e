"""Where spans are sent, checked once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TRACES_PATH = "/v1/traces"

ENVIRONMENT = "SLOTSCOPE_OTLP"
"""Where the collector sends spans to that a traced process starts."""


class EndpointError(ValueError):
    """An endpoint that no span can be sent to. The message says what one looks like."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OTLP/HTTP receiver: what is posted where."""

    host: str
    port: int
    path: str
    secure: bool
    headers: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(url: str, headers: Mapping[str, str] | None = None) -> Endpoint:
        """From a URL. Without a path it is a base, and `/v1/traces` is appended, as OTLP says.

        Raises:
            EndpointError: it is no http or https URL, or a header can't be sent.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise EndpointError(f"{url!r} is no URL ({error}). {_CURE}") from None
        if not url.isascii() or any(c <= " " for c in url):
            raise EndpointError(f"{url!r} holds a space or a letter beyond ASCII. {_CURE}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EndpointError(f"{url!r} is no http or https URL. {_CURE}")
        secure = parts.scheme == "https"
        path = TRACES_PATH if parts.path in ("", "/") else parts.path
        query = f"?{parts.query}" if parts.query else ""
        pairs = tuple((headers or {}).items())
        for name, value in pairs:
            _check_header(name, value)
        return Endpoint(
            parts.hostname, port or (443 if secure else 80), path + query, secure, pairs
        )

    @property
    def url(self) -> str:
        """As it is shown to people; headers, which may hold secrets, are left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.path}"


_CURE = "Give the address of an OTLP/HTTP receiver, for example http://localhost:4318."


def _check_header(name: str, value: str) -> None:
    if not name or not name.isascii() or any(c in name for c in " \t\r\n:"):
        raise EndpointError(f"{name!r} is no header name. Write headers as name=value.")
    try:
        plain = not any(c in value for c in "\r\n\0") and value.encode("latin-1") is not None
    except UnicodeEncodeError:
        plain = False
    if not plain:
        raise EndpointError(
            f"The value of header {name!r} holds a line break, a NUL, or a letter that no HTTP "
            "header can carry. Percent-encode it if the receiver decodes that."
        )


def parse_headers(pairs: Iterable[str]) -> dict[str, str]:
    """Headers from `name=value`, the value percent-encoded as in OTEL_EXPORTER_OTLP_HEADERS.

    Raises:
        EndpointError: a pair has no `=`.
    """
    headers = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise EndpointError(f"{pair!r} is no header. Write headers as name=value.")
        headers[name.strip()] = unquote(value.strip())
    return headers


def headers_of_environment() -> dict[str, str]:
    """OTEL_EXPORTER_OTLP_TRACES_HEADERS, else OTEL_EXPORTER_OTLP_HEADERS: name=value, ..."""
    text = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or os.environ.get(
        "OTEL_EXPORTER_OTLP_HEADERS", ""
    )
    return parse_headers(pair for pair in text.split(",") if pair.strip())


def endpoint_of_environment() -> Endpoint | None:
    """What SLOTSCOPE_OTLP names, with OpenTelemetry's headers; None if it is unset or empty.

    Raises:
        EndpointError: it is no endpoint, or a header can't be read.
    """
    url = os.environ.get(ENVIRONMENT)
    return Endpoint.of(url, headers_of_environment()) if url else None
