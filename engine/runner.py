"""Runner: one forward on the device."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from slotscope.instrument.event import Kind

from .batch import Batch, Item, Result
from .forward import Forward, Track
from .grids import Grids
from .memory import Memory
from .models.base import Model
from .request import SamplingParams
from .rows import DISCARD, Rows
from .sampler import Sampler
from .slots import PAD
from .speculation.accept import Accepted, accept, along, compact
from .speculation.commit import commit, prepare
from .speculation.draft import Draft
from .speculation.drafter import Drafter
from .states import States

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
"""Batch sizes of decode and verify, as CUDA graphs would have them; the rest is padding."""


class Runner:
    """Reads what it needs to know of a row (length, last token) on the device, never from the host,
    so that a batch may be launched before the one ahead of it is retired."""

    def __init__(
        self,
        model: Model,
        memory: Memory,
        rows: Rows,
        states: States,
        sampler: Sampler,
        drafter: Drafter | None,
        grids: Grids,
        *,
        commits: bool,
    ) -> None:
        self.model, self.memory, self.rows, self.states = model, memory, rows, states
        self._sampler, self._drafter, self._grids = sampler, drafter, grids
        self._commits = commits  # False: the verify of this drafter moves no state

    @torch.inference_mode()
    def run(self, batch: Batch) -> Result:
        """Launch a batch. Initialises the slots of new requests first, in stream order."""
        if batch.kind is Kind.PREFILL:
            return self._prefill(batch.items)
        if batch.kind is Kind.DECODE:
            return self._decode(batch.items)
        return self._verify(batch.items)

    def _prefill(self, items: tuple[Item, ...]) -> Result:
        self._initialise(items)
        rows = self._index([item.running.row for item in items])
        lengths = [item.end - item.start for item in items]
        batch = self._prefill_batch(items, rows, lengths)
        hidden = self.model.forward(batch, self.memory)
        last = self._index(lengths).cumsum(0) - 1
        logits = self.model.logits(hidden[last])[:, None]
        before = self.rows.lengths[rows]
        ends = before + self._index(lengths)
        tokens, logprobs = self._sampler.choose(logits, _asked(items), ends[:, None])
        self.rows.lengths[rows] = ends
        self._keep_chosen(items, rows, ends, tokens[:, 0])
        if self._drafter:
            following = torch.cat(
                [self.rows.tokens[i.running.row, i.start + 1 : i.end + 1] for i in items]
            )
            self._drafter.observe(batch, hidden, following, rows, last)
        return _single(tokens, logprobs, before)

    def _decode(self, items: tuple[Item, ...]) -> Result:
        count, rows, slots = self._padded(items)
        before = self.rows.lengths[rows]
        tokens = self.rows.tokens[rows, before][:, None]
        batch = self._steps(Kind.DECODE, items, rows, slots, tokens)
        hidden = self.model.forward(batch, self.memory)
        logits = self.model.logits(hidden)[:count, None]
        chosen, logprobs = self._sampler.choose(logits, _asked(items), before[:count, None] + 1)
        self._copy_tracks(items)
        rows, before = rows[:count], before[:count]
        self.rows.lengths[rows] = before + 1
        self.rows.tokens[rows, before + 1] = chosen[:, 0]
        return _single(chosen, logprobs, before)

    def _verify(self, items: tuple[Item, ...]) -> Result:
        assert self._drafter is not None
        count, rows, slots = self._padded(items)
        plan = prepare(
            rows[:count],
            [item.live_slot for item in items],
            [item.target.slot if item.target else None for item in items],
        )
        before = self.rows.lengths[rows]
        draft = self._drafter.draft(rows)
        batch = self._steps(Kind.VERIFY, items, rows, slots, self._fed(rows, before, draft), draft)
        hidden = self.model.forward(batch, self.memory)
        logits = self.model.logits(hidden).view(len(rows), -1, self.model.vocab_size)[:count]
        mine, before = draft.of(count), before[:count]
        places = before[:, None] + 1 + mine.depths()
        chosen, logprobs = self._sampler.choose(logits, _asked(items), places)
        accepted = accept(mine, chosen)
        if self._commits:
            commit(self.states, plan, self._grids, before, accepted)
        if draft.parents is not None:
            chosen, logprobs = along(accepted.path, chosen), along(accepted.path, logprobs)
            batch, hidden = self._chained(batch, hidden, accepted)
        self._advance(batch, hidden, rows, before, chosen, accepted)
        return Result(chosen, logprobs, before, accepted.length, accepted.index)

    def _fed(self, rows: Tensor, before: Tensor, draft: Draft) -> Tensor:
        """[B, S]: each row's last token, and the guesses behind it."""
        return torch.cat([self.rows.tokens[rows, before][:, None], draft.tokens], 1)

    def _chained(
        self, batch: Forward, hidden: Tensor, accepted: Accepted
    ) -> tuple[Forward, Tensor]:
        """The path of a tree, padding included, as if it had been fed as a chain; its KV moves."""
        rows, width = len(batch.lengths), accepted.index.shape[1]
        path = torch.arange(width, device=hidden.device).repeat(rows, 1)
        path[: len(accepted.length)] = accepted.path
        locations = batch.locations.view(rows, -1)
        compact(self.memory, locations, path)
        chain = replace(
            batch,
            positions=(batch.contexts[:, None] + torch.arange(width, device=path.device)).flatten(),
            lengths=[width] * rows,
            locations=locations[:, :width].flatten(),
            parents=None,
        )
        return chain, along(path, hidden.view(rows, -1, hidden.shape[-1])).flatten(0, 1)

    def _advance(
        self,
        batch: Forward,
        hidden: Tensor,
        rows: Tensor,
        before: Tensor,
        chosen: Tensor,
        accepted: Accepted,
    ) -> None:
        """Advance the rows; what was chosen beyond the accepted tokens is overwritten later."""
        assert self._drafter is not None
        count, width = chosen.shape
        mine = rows[:count]
        ahead = torch.arange(1, width + 1, device=rows.device)
        self.rows.tokens[mine[:, None], before[:, None] + ahead] = chosen
        self.rows.lengths[mine] = before + accepted.length
        following = torch.zeros(len(rows), width, dtype=torch.int64, device=rows.device)
        following[:count] = chosen
        last = torch.arange(len(rows), device=rows.device) * width
        last[:count] += accepted.length - 1
        self._drafter.observe(batch, hidden, following.reshape(-1), rows, last)

    def _initialise(self, items: tuple[Item, ...]) -> None:
        """The deferred copy-on-write and clear of new requests."""
        fresh = [item for item in items if item.fresh]
        restored = [item for item in fresh if item.source is not None]
        self.states.copy(
            [item.source for item in restored if item.source is not None],
            [item.live_slot for item in restored],
        )
        self.states.clear([item.live_slot for item in fresh if item.source is None])

    def _copy_tracks(self, items: tuple[Item, ...]) -> None:
        """Decode: a checkpoint is a copy of the live state after the step."""
        tracked = [item for item in items if item.target]
        self.states.copy(
            [item.live_slot for item in tracked],
            [item.target.slot for item in tracked if item.target],
        )

    def _keep_chosen(
        self, items: tuple[Item, ...], rows: Tensor, ends: Tensor, chosen: Tensor
    ) -> None:
        """The first output token follows the prompt; amid the prompt its next token is there."""
        final = torch.tensor([item.last for item in items], device=rows.device)
        self.rows.tokens[rows[final], ends[final]] = chosen[final]

    def _prefill_batch(self, items: tuple[Item, ...], rows: Tensor, lengths: list[int]) -> Forward:
        positions = torch.cat([torch.arange(i.start, i.end, device=rows.device) for i in items])
        repeated = rows.repeat_interleave(self._index(lengths))
        tracks = tuple(
            Track(at, item.target.depth - item.start, item.target.slot)
            for at, item in enumerate(items)
            if item.target and item.target.depth is not None
        )
        return Forward(
            kind=Kind.PREFILL,
            tokens=self.rows.tokens[repeated, positions],
            positions=positions,
            lengths=lengths,
            contexts=self.rows.lengths[rows],
            locations=self.rows.table[repeated, positions],
            table=self.rows.table[rows, : max(item.end for item in items)],
            slots=self._index([item.live_slot for item in items]),
            tracks=tracks,
        )

    def _steps(
        self,
        kind: Kind,
        items: tuple[Item, ...],
        rows: Tensor,
        slots: Tensor,
        tokens: Tensor,
        draft: Draft | None = None,
    ) -> Forward:
        """A decode or verify of tokens [B, S], padding included."""
        width = tokens.shape[1]
        context = self.rows.lengths[rows]
        places = context[:, None] + torch.arange(width, device=rows.device)
        positions = context[:, None] + draft.depths() if draft else places
        # The host's bound on the longest row, not the device's own figure: reading that would wait.
        longest = min(max(item.end for item in items) + 2 * width, self.rows.width)
        locations = self.rows.table[rows[:, None], places]
        return Forward(
            kind=kind,
            tokens=tokens.reshape(-1),
            positions=positions.reshape(-1),
            lengths=[width] * len(rows),
            contexts=context,
            locations=locations.reshape(-1),
            table=self.rows.table[rows, :longest],
            slots=slots,
            scratch=rows if kind is Kind.VERIFY else None,
            parents=draft.parents if draft else None,
        )

    def _padded(self, items: tuple[Item, ...]) -> tuple[int, Tensor, Tensor]:
        """Number of real rows; rows and live slots, filled up to the bucket's size."""
        count = len(items)
        size = next((bucket for bucket in BUCKETS if bucket >= count), count)
        rows = [item.running.row for item in items] + [DISCARD] * (size - count)
        slots = [item.live_slot for item in items] + [PAD] * (size - count)
        return count, self._index(rows), self._index(slots)

    def _index(self, values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.rows.table.device)


def _single(tokens: Tensor, logprobs: Tensor, before: Tensor) -> Result:
    """One token a row, as prefill and decode choose it."""
    return Result(tokens, logprobs, before, torch.ones_like(before), torch.zeros_like(tokens))


def _asked(items: tuple[Item, ...]) -> list[SamplingParams]:
    return [item.running.request.sampling for item in items]
