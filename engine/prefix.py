"""PrefixHash: what the trace knows a prefix by."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b


class PrefixHash:
    """64-bit hash of a request's first tokens under its namespace, kept as they become more.

    BLAKE2b over the namespace, its length before it, and the tokens as 64-bit integers: two
    prefixes hash alike if and only if they may share a checkpoint, to within a chance of 2^-64.
    """

    def __init__(self, extra_key: str) -> None:
        key = extra_key.encode(errors="surrogatepass")
        self._empty = blake2b(len(key).to_bytes(8, "little") + key, digest_size=8)
        self._state, self._depth = self._empty.copy(), 0

    def at(self, tokens: Sequence[int], depth: int) -> int:
        """Hash of tokens[:depth]. Tokens may be appended between calls, never changed.

        Each token is fed once where depths only grow; a lesser one starts over.
        """
        if depth < self._depth:
            self._state, self._depth = self._empty.copy(), 0
        more = array("q", tokens[self._depth : depth])
        self._state.update(more)
        self._depth += len(more)
        return int.from_bytes(self._state.digest(), "little", signed=True)
