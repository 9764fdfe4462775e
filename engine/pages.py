"""PagePool: KV locations for attention layers, handed out in pages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class PageError(RuntimeError):
    """The page accounting does not add up."""


class PagePool:
    """Page p holds locations p * size .. (p + 1) * size - 1. Page 0 takes the writes of padding."""

    def __init__(self, tokens: int, page_size: int) -> None:
        self.page_size = page_size
        self.count = tokens // page_size
        self._free: deque[int] = deque(range(1, self.count + 1))

    @property
    def size(self) -> int:
        """Locations of all pages."""
        return self.count * self.page_size

    @property
    def free_tokens(self) -> int:
        """Locations that nobody holds."""
        return len(self._free) * self.page_size

    def pages(self, tokens: int) -> int:
        """Pages that so many tokens need."""
        return -(-tokens // self.page_size)

    def allocate(self, tokens: int) -> list[int] | None:
        """Locations for at least `tokens` tokens, whole pages, in order; None if too few."""
        need, size = self.pages(tokens), self.page_size
        if need > len(self._free):
            return None
        taken = [self._free.popleft() for _ in range(need)]
        return [page * size + offset for page in taken for offset in range(size)]

    def free(self, locations: Iterable[int]) -> None:
        """Give whole pages back; `locations` is a run of them as `allocate` returned it."""
        pages = [where // self.page_size for where in locations if where % self.page_size == 0]
        self._free.extend(pages)
        if len(self._free) > self.count:
            raise PageError(
                f"{len(self._free)} pages are free of {self.count}: {pages} were freed twice. "
                "Two requests would write the same KV. Pages end in Cache.release and eviction."
            )
