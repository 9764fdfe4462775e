"""Driver: a model run by hand, for tests of models and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from slotscope.engine.forward import Forward, Track, ancestry
from slotscope.engine.memory import Memory
from slotscope.instrument.event import Kind

from .base import Model

Tokens = Mapping[int, Sequence[int]]
"""New tokens of each sequence, which goes by its slot."""


class Driver:
    """Feeds sequences to a model, keeps their KV locations, and tries to catch it out.

    All memory starts as NaN, so whatever is read before it is written shows in the result. KV
    locations are handed out in shuffled pages, one token of each rank. Nothing is ever freed.
    """

    def __init__(
        self,
        model: Model,
        dtype: torch.dtype,
        *,
        tokens: int = 2048,
        slots: int = 16,
        rows: int = 6,
        draft_tokens: int = 4,
        ranks: int = 1,
        device: str = "cpu",
    ) -> None:
        self.model, self._device = model, torch.device(device)
        self.memory = Memory.allocate(
            model.shape(),
            tokens=tokens // ranks,
            ranks=ranks,
            slots=slots,
            rows=rows,
            draft_tokens=draft_tokens,
            dtype=dtype,
            device=self._device,
        )
        memory = self.memory
        for tensor in (memory.keys, memory.values, memory.conv, memory.ssm):
            tensor.fill_(float("nan"))
        for tensor in (memory.conv_steps, memory.ssm_steps):
            tensor.fill_(float("nan"))
        pages = tokens // ranks - 1
        shuffled = torch.randperm(pages, generator=torch.Generator().manual_seed(0)) + 1
        self._free = shuffled.tolist()
        self._locations: dict[int, list[int]] = {}

    def begin(self, *slots: int) -> None:
        """Start empty sequences in these slots."""
        for slot in slots:
            self.memory.conv[:, slot] = 0
            self.memory.ssm[:, slot] = 0
            self._locations[slot] = []

    def prefill(self, tokens: Tokens, tracks: Sequence[Track] = (), pads: int = 0) -> Tensor:
        """Append to several sequences. Returns the trunk's hidden [T, H], sequence by sequence."""
        batch = self.batch(Kind.PREFILL, tokens, pads, tracks)
        return self.model.forward(batch, self.memory)

    def decode(self, tokens: Mapping[int, int], pads: int = 0) -> Tensor:
        """Append one token to each sequence. Returns hidden [rows and pads, H]."""
        one = {slot: [token] for slot, token in tokens.items()}
        return self.model.forward(self.batch(Kind.DECODE, one, pads), self.memory)

    def verify(
        self, tokens: Tokens, pads: int = 0, parents: Sequence[Sequence[int]] | None = None
    ) -> Tensor:
        """Feed draft tokens, equally many each; scratch rows 0, 1, ... take the states, in order.

        They count as appended: `rewind` takes them back. Returns hidden [rows and pads, D, H].
        With `parents`, the tokens of each row that is no padding are a tree.
        """
        batch = self.batch(Kind.VERIFY, tokens, pads)
        if parents is not None:
            width = batch.lengths[0]
            tree = torch.tensor([*parents, *pads * [range(-1, width - 1)]], device=self._device)
            depths = (ancestry(tree).sum(-1) - 1 + batch.contexts[:, None]).flatten()
            batch = replace(batch, parents=tree, positions=depths)
        hidden = self.model.forward(batch, self.memory)
        return hidden.view(len(tokens) + pads, -1, hidden.shape[-1])

    def rewind(self, slot: int, tokens: int) -> None:
        """Forget the last `tokens` tokens of a sequence's KV."""
        del self._locations[slot][len(self._locations[slot]) - tokens :]

    def state(self, slot: int) -> tuple[Tensor, Tensor]:
        """A copy of (conv, ssm) of all layers."""
        return self.memory.conv[:, slot].clone(), self.memory.ssm[:, slot].clone()

    def batch(
        self, kind: Kind, tokens: Tokens, pads: int = 0, tracks: Sequence[Track] = ()
    ) -> Forward:
        """A batch that appends `tokens`, and `pads` rows of padding behind them."""
        contexts = [len(self._locations[slot]) for slot in tokens]
        lengths = [len(new) for new in tokens.values()]
        new = [
            self._grow(slot)
            for slot, length in zip(tokens, lengths, strict=True)
            for _ in range(length)
        ]
        width = max(len(self._locations[slot]) for slot in tokens) + 3
        table = [self._row(self._locations[slot], width) for slot in tokens]

        pad = lengths[0] if pads else 0
        flat = [token for row in tokens.values() for token in row] + [0] * (pads * pad)
        spans = zip(contexts, lengths, strict=True)
        positions = [p for start, length in spans for p in range(start, start + length)]
        return Forward(
            kind=kind,
            tokens=self._vector(flat),
            positions=self._vector(positions + list(range(pad)) * pads),
            lengths=lengths + [pad] * pads,
            contexts=self._vector(contexts + [0] * pads),
            locations=self._vector(new + [0] * (pads * pad)),
            table=torch.tensor(table + [[0] * width] * pads, device=self._device),
            slots=self._vector([*tokens, *[0] * pads]),
            scratch=self._scratch(len(tokens), pads) if kind is Kind.VERIFY else None,
            tracks=tuple(tracks),
        )

    def _grow(self, slot: int) -> int:
        """The location of the sequence's next token: in a page of its own, or in the last one's."""
        own, ranks = self._locations[slot], self.memory.ranks
        own.append(own[-1] + 1 if len(own) % ranks else self._free.pop() * ranks)
        return own[-1]

    def _scratch(self, rows: int, pads: int) -> Tensor:
        """Rows in order; all padding gets the last one."""
        last = self.memory.ssm_steps.shape[1] - 1
        return self._vector([*range(rows), *[last] * pads])

    def _row(self, locations: list[int], width: int) -> list[int]:
        return locations + [0] * (width - len(locations))

    def _vector(self, values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)
