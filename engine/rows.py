"""Rows: a running request's place on the device.

The host knows a request's length only when its forwards are retired; the device knows it at once.
What the next forward needs (how long, which tokens, where the KV is) therefore lives on the device,
in a row that a request keeps from admission to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

DISCARD = 0
"""The row that padding names."""

Grown = tuple[int, int, Sequence[int]]
"""Further KV locations of a row: the row, the index of the first one, the locations."""


class Rows:
    """`count` rows of `width` tokens. Row 0 is for padding."""

    def __init__(self, count: int, width: int, device: torch.device) -> None:
        self.count, self.width = count, width
        self.table = torch.zeros(count + 1, width, dtype=torch.int64, device=device)
        """[rows, width] KV location of each token."""
        self.tokens = torch.zeros(count + 1, width, dtype=torch.int64, device=device)
        """[rows, width] prompt and what was chosen; tokens[row, lengths[row]] is fed next."""
        self.lengths = torch.zeros(count + 1, dtype=torch.int64, device=device)
        """[rows] tokens whose KV is written and whose recurrence is in the state."""
        self._free: deque[int] = deque(range(1, count + 1))

    @property
    def free_count(self) -> int:
        """Rows that nobody holds."""
        return len(self._free)

    def allocate(self, tokens: Sequence[int], cached: int, locations: Sequence[int]) -> int:
        """Seat a request whose first `cached` tokens need not be computed. A row must be free."""
        row = self._free.popleft()
        device = self.table.device
        self.tokens[row, : len(tokens)] = torch.tensor(tokens, device=device)
        self.table[row] = 0
        self.table[row, : len(locations)] = torch.tensor(locations, device=device)
        self.lengths[row] = cached
        return row

    def extend(self, grown: Sequence[Grown]) -> None:
        """Name the further KV locations of all rows that grew."""
        if not grown:
            return
        device = self.table.device
        index = torch.tensor(
            [(row, start + at) for row, start, more in grown for at in range(len(more))],
            device=device,
        )
        where = [location for _, _, more in grown for location in more]
        self.table[index[:, 0], index[:, 1]] = torch.tensor(where, device=device)

    def relocate(self, row: int, locations: Sequence[int]) -> None:
        """The first tokens of a row are to be read elsewhere from now on (the tree had them)."""
        moved = torch.tensor(locations, dtype=torch.int64, device=self.table.device)
        self.table[row, : len(locations)] = moved

    def free(self, row: int) -> None:
        """Give a row back."""
        self._free.append(row)
