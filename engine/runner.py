"""Runner: one forward on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from slotscope.instrument.event import Kind

from .batch import Batch, Item, Launch, Result
from .forward import Forward, Pending, Track
from .grids import Grids
from .request import SamplingParams
from .rows import DISCARD, Rows
from .sampler import Sampler
from .slots import PAD
from .snapshot import Snapshot
from .speculation.accept import accept, along
from .speculation.commit import prepare
from .speculation.draft import Draft
from .speculation.drafter import Drafter
from .stage import Stage

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)
"""Batch sizes of decode and verify, as CUDA graphs would have them; the rest is padding."""


class Runner:
    """Reads what it needs to know of a row (length, last token) on the device, never from the host,
    so that a batch may be launched before the one ahead of it is retired.

    A batch takes steps: `snapshot` when it is launched, each stage's layers, `choose`, each stage's
    `settle`, and `advance`. `run` takes them at once; a pipeline takes them one by one.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        rows: Rows,
        sampler: Sampler,
        drafter: Drafter | None,
        grids: Grids,
        *,
        commits: bool,
        stable_rows: bool = True,
    ) -> None:
        self.stages, self.rows = tuple(stages), rows
        self._sampler, self._drafter, self._grids = sampler, drafter, grids
        self.commits = commits  # False: the verify of this drafter moves no state
        self._stable_rows = stable_rows  # False: scratch goes by the place in the batch

    @torch.inference_mode()
    def run(self, launch: Launch) -> Result:
        """Compute a batch, on all stages at once."""
        snapshot = self.snapshot(launch)
        hidden: Tensor | None = None
        for stage in self.stages:
            hidden = stage.forward(snapshot, hidden)
        assert hidden is not None, "a model has at least one stage"
        result = self.choose(snapshot, hidden)
        for stage in self.stages if snapshot.plan else ():
            stage.compact(snapshot, result)
            if self.commits:
                stage.commit(snapshot, result, self._grids)
        self.advance(snapshot, hidden, result)
        return result

    @torch.inference_mode()
    def snapshot(self, launch: Launch) -> Snapshot:
        """What the batch computes, and where it reads and writes."""
        items = launch.batch.items
        if launch.batch.kind is Kind.PREFILL:
            rows = self._index([item.running.row for item in items])
            return Snapshot(launch, self._prefill_forward(items, rows), rows)
        count, rows, slots = self._padded(items)
        if launch.batch.kind is Kind.DECODE:
            last = self.rows.tokens[rows, self.rows.lengths[rows]][:, None]
            forward = self._steps(launch.batch, rows, slots, last)
            return Snapshot(launch, replace(forward, pending=_pending(items)), rows)
        assert self._drafter is not None
        held = self._scratch(items)
        scratch = self._index([*held, *[DISCARD] * (len(rows) - count)])
        plan = prepare(
            scratch[:count],
            [item.live_slot for item in items],
            [item.target.slot if item.target else None for item in items],
        )
        draft = self._drafter.draft(rows)
        fed = self._fed(rows, self.rows.lengths[rows], draft)
        forward = self._steps(launch.batch, rows, slots, fed, draft, scratch)
        return Snapshot(launch, forward, rows, plan, held, draft)

    @torch.inference_mode()
    def choose(self, snapshot: Snapshot, hidden: Tensor) -> Result:
        """Tokens from the last stage's hidden [T, H]; of a verify, how many of its drafts hold."""
        model, forward, count = self.stages[-1].model, snapshot.forward, snapshot.count
        asked, before = _asked(snapshot.batch.items), forward.contexts[:count]
        if snapshot.draft is not None:
            draft = snapshot.draft.of(count)
            logits = model.logits(hidden).view(len(snapshot.rows), -1, model.vocab_size)[:count]
            places = before[:, None] + 1 + draft.depths()
            chosen, logprobs = self._sampler.choose(logits, asked, places)
            accepted = accept(draft, chosen)
            if draft.parents is not None:
                chosen, logprobs = along(accepted.path, chosen), along(accepted.path, logprobs)
            return Result(chosen, logprobs, before, accepted.length, accepted.index)
        lengths = self._index(forward.lengths)
        last, ends = (lengths.cumsum(0) - 1)[:count], before + lengths[:count]
        logits = model.logits(hidden[last])[:, None]
        tokens, logprobs = self._sampler.choose(logits, asked, ends[:, None])
        return Result(tokens, logprobs, before, torch.ones_like(before), torch.zeros_like(tokens))

    @torch.inference_mode()
    def advance(self, snapshot: Snapshot, hidden: Tensor, result: Result) -> None:
        """Let the rows and the drafter know of what was chosen."""
        self.record(snapshot, result)
        if self._drafter is None or snapshot.batch.kind is Kind.DECODE:
            return
        if snapshot.batch.kind is Kind.PREFILL:
            self._observe_prefill(snapshot, hidden)
        else:
            self._observe_verify(snapshot, hidden, result)

    def record(self, snapshot: Snapshot, result: Result) -> None:
        """Advance the rows; what was chosen beyond the accepted tokens is overwritten later."""
        count, items, before = snapshot.count, snapshot.batch.items, result.before
        rows = snapshot.rows[:count]
        if snapshot.batch.kind is Kind.PREFILL:
            ends = before + self._index(snapshot.forward.lengths)
            self.rows.lengths[rows] = ends
            self._keep_chosen(items, rows, ends, result.tokens[:, 0])
            return
        ahead = torch.arange(1, result.tokens.shape[1] + 1, device=rows.device)
        self.rows.tokens[rows[:, None], before[:, None] + ahead] = result.tokens
        self.rows.lengths[rows] = before + result.accept

    def _observe_prefill(self, snapshot: Snapshot, hidden: Tensor) -> None:
        assert self._drafter is not None
        forward = snapshot.forward
        following = torch.cat(
            [
                self.rows.tokens[item.running.row, item.start + 1 : item.end + 1]
                for item in snapshot.batch.items
            ]
        )
        last = self._index(forward.lengths).cumsum(0) - 1
        self._drafter.observe(forward, hidden, following, snapshot.rows, last)

    def _observe_verify(self, snapshot: Snapshot, hidden: Tensor, result: Result) -> None:
        assert self._drafter is not None
        forward, rows = snapshot.forward, snapshot.rows
        if forward.parents is not None:
            forward, hidden = _chained(snapshot, hidden, result)
        count, width = result.tokens.shape
        following = torch.zeros(len(rows), width, dtype=torch.int64, device=rows.device)
        following[:count] = result.tokens
        last = torch.arange(len(rows), device=rows.device) * width
        last[:count] += result.accept - 1
        self._drafter.observe(forward, hidden, following.reshape(-1), rows, last)

    def _fed(self, rows: Tensor, before: Tensor, draft: Draft) -> Tensor:
        """[B, S]: each row's last token, and the guesses behind it."""
        return torch.cat([self.rows.tokens[rows, before][:, None], draft.tokens], 1)

    def _keep_chosen(
        self, items: tuple[Item, ...], rows: Tensor, ends: Tensor, chosen: Tensor
    ) -> None:
        """The first output token follows the prompt; amid the prompt its next token is there."""
        final = torch.tensor([item.last for item in items], device=rows.device)
        self.rows.tokens[rows[final], ends[final]] = chosen[final]

    def _prefill_forward(self, items: tuple[Item, ...], rows: Tensor) -> Forward:
        lengths = [item.end - item.start for item in items]
        positions = torch.cat([torch.arange(i.start, i.end, device=rows.device) for i in items])
        repeated = rows.repeat_interleave(self._index(lengths))
        tracks = tuple(
            Track(at, item.target.depth - item.start, item.target.slot)
            for at, item in enumerate(items)
            if not item.decodes and item.target and item.target.depth is not None
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
            pending=_pending(items),
        )

    def _steps(
        self,
        batch: Batch,
        rows: Tensor,
        slots: Tensor,
        tokens: Tensor,
        draft: Draft | None = None,
        scratch: Tensor | None = None,
    ) -> Forward:
        """A decode or verify of tokens [B, S], padding included."""
        width = tokens.shape[1]
        context = self.rows.lengths[rows]
        places = context[:, None] + torch.arange(width, device=rows.device)
        positions = context[:, None] + draft.depths() if draft else places
        # The host's bound on the longest row, not the device's own figure: reading that would wait.
        longest = min(max(item.end for item in batch.items) + 2 * width, self.rows.width)
        locations = self.rows.table[rows[:, None], places]
        return Forward(
            kind=batch.kind,
            tokens=tokens.reshape(-1),
            positions=positions.reshape(-1),
            lengths=[width] * len(rows),
            contexts=context,
            locations=locations.reshape(-1),
            table=self.rows.table[rows, :longest],
            slots=slots,
            scratch=scratch,
            parents=draft.parents if draft else None,
        )

    def _scratch(self, items: tuple[Item, ...]) -> tuple[int, ...]:
        """A request's own row, its from admission to end. A place in the batch is another request's
        in the next batch, which a pipeline stage may compute before this one's result comes."""
        if self._stable_rows:
            return tuple(item.running.row for item in items)
        return tuple(range(1, len(items) + 1))

    def _padded(self, items: tuple[Item, ...]) -> tuple[int, Tensor, Tensor]:
        """Number of real rows; rows and live slots, filled up to the bucket's size."""
        count = len(items)
        size = next((bucket for bucket in BUCKETS if bucket >= count), count)
        rows = [item.running.row for item in items] + [DISCARD] * (size - count)
        slots = [item.live_slot for item in items] + [PAD] * (size - count)
        return count, self._index(rows), self._index(slots)

    def _index(self, values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.rows.table.device)


def _chained(snapshot: Snapshot, hidden: Tensor, result: Result) -> tuple[Forward, Tensor]:
    """The path of a tree, padding included, as if it had been fed as a chain."""
    forward, rows = snapshot.forward, len(snapshot.rows)
    path = snapshot.path(result)
    width = path.shape[1]
    ahead = torch.arange(width, device=path.device)
    chain = replace(
        forward,
        positions=(forward.contexts[:, None] + ahead).flatten(),
        lengths=[width] * rows,
        locations=forward.locations.view(rows, -1)[:, :width].flatten(),
        parents=None,
    )
    return chain, along(path, hidden.view(rows, -1, hidden.shape[-1])).flatten(0, 1)


def _pending(items: tuple[Item, ...]) -> Pending | None:
    """What the rings of the rows hold; None where no ring has a part in it."""
    if all(item.folds and not item.pending for item in items):
        return None
    return Pending(tuple(i.pending for i in items), tuple(i.folds for i in items))


def _asked(items: tuple[Item, ...]) -> list[SamplingParams]:
    return [item.running.request.sampling for item in items]
