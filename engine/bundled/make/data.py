"""Documents as one stream of tokens, and random stretches of it that start with a document."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slotscope.engine.bundled.corpus import END_OF_TEXT, document, encode


@dataclass(frozen=True, slots=True)
class Stream:
    """`tokens` [N] int16 of all documents, each closed by end-of-text; `starts` [D] int64."""

    tokens: Tensor
    starts: Tensor

    def rows(self, count: int, length: int, generator: torch.Generator) -> Tensor:
        """[count, length] int64, each row from a random document's start on."""
        room = int((self.starts <= len(self.tokens) - length).sum())
        if not room:
            raise ValueError(
                f"the stream has {len(self.tokens)} tokens, too few for a row of {length}: "
                "write more documents"
            )
        drawn = self.starts[torch.randint(room, (count,), generator=generator)]
        return self.tokens[drawn[:, None] + torch.arange(length)].long()


def write(first: int, count: int) -> Stream:
    """The stream of documents `first` to `first + count - 1`; about 10 MB a second."""
    flat: list[int] = []
    starts = []
    for number in range(first, first + count):
        starts.append(len(flat))
        flat += encode(document(number))
        flat.append(END_OF_TEXT)
    return Stream(torch.tensor(flat, dtype=torch.int16), torch.tensor(starts))
