"""The socket that the server listens on, bound before the model is loaded."""

from __future__ import annotations

import socket

_PORT_MAX = 65535


class ListenError(OSError):
    """An address that can't be listened on."""


def bind(host: str, port: int) -> socket.socket:
    """A bound TCP socket. Port 0 takes any free one; `getsockname` tells which.

    Raises:
        ListenError: the port is taken or no port, or the host is none of this machine's.
    """
    if not 0 <= port <= _PORT_MAX:
        raise ListenError(f"--port is {port}, but must be 0 (any free one) to {_PORT_MAX}.")
    # asyncio switches Nagle's algorithm off only for sockets that name their protocol. With it on,
    # each reply waits 40 ms for the client's delayed acknowledgement.
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(_message(host, port, error)) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise ListenError(_message(host, port, error)) from error
    return listener


def _message(host: str, port: int, error: OSError) -> str:
    return (
        f"can't listen on {host} port {port}: {error.strerror}. "
        "Choose another --port (0 takes a free one), or an address of this machine as --host."
    )
