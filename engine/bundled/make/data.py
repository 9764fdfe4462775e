"""Documents as one stream of tokens, and random stretches of it that start with a document."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing import Pool

import torch
from torch import Tensor

from ..corpus import END_OF_TEXT, document, encode

_BLOCK = 1000  # documents a worker writes at a time


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


def write(first: int, count: int, workers: int) -> Stream:
    """The stream of documents `first` to `first + count - 1`, written by `workers` processes."""
    blocks = [
        (start, min(_BLOCK, first + count - start)) for start in range(first, first + count, _BLOCK)
    ]
    with Pool(workers) as pool:
        parts = pool.starmap(_block, blocks)
    lengths = torch.cat([part_lengths for _, part_lengths in parts])
    return Stream(torch.cat([tokens for tokens, _ in parts]), lengths.cumsum(0) - lengths)


def _block(first: int, count: int) -> tuple[Tensor, Tensor]:
    texts = [[*encode(document(number)), END_OF_TEXT] for number in range(first, first + count)]
    flat = [token for text in texts for token in text]
    return torch.tensor(flat, dtype=torch.int16), torch.tensor([len(text) for text in texts])
