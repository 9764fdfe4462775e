"""Batch: what is computed together. Flight: a batch that is launched and not yet retired."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from slotscope.instrument.event import Kind

from .running import Running, Target


@dataclass(frozen=True, slots=True)
class Item:
    """One request's part of a batch. A copy of what retiring needs: the request moves on."""

    running: Running
    start: int  # tokens that the host knew to be in the state at launch
    end: int  # prefill, decode: tokens in the state afterwards; verify: start
    target: Target | None = None
    last: bool = True  # prefill: the chunk ends the prompt, so a token is chosen
    source: int | None = None  # first forward: slot to restore from
    node: int | None = None  # and the node that holds it
    fresh: bool = False  # first forward: the live slot is initialised here
    pending: int = 0  # inputs in the slot's replay ring before it, which the state lacks
    folds: bool = True  # afterwards there are none; False: there is one more
    decodes: bool = False  # a decode step, alone or beside the prompts of a mixed prefill

    @property
    def left(self) -> int:
        """Inputs in the slot's replay ring after it."""
        return 0 if self.folds else self.pending + 1

    @property
    def live_slot(self) -> int:
        """Where the state is."""
        assert self.running.live is not None
        return self.running.live.slot


@dataclass(frozen=True, slots=True)
class Batch:
    """Items of one kind of forward."""

    kind: Kind
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What the device made of a batch. Rows are the batch's items, padding left out.

    Reading it waits for the device, so it is read when the flight is retired, not before.
    """

    tokens: Tensor  # [B, S] int64, chosen tokens; a verify accepts the first accept[b] of them
    logprobs: Tensor  # [B, S] of the chosen tokens, under temperature 1
    before: Tensor  # [B] int64, tokens in the state before the forward
    accept: Tensor  # [B] int64, 1 unless the forward is a verify
    accept_index: Tensor  # [B, S] int64, node of each accepted token, beyond them -1

    def paths(self) -> list[list[int]]:
        """The accepted nodes of each row, which are tokens in a chain. Waits for the device."""
        index, accept = self.accept_index.tolist(), self.accept.tolist()
        return [nodes[:taken] for nodes, taken in zip(index, accept, strict=True)]


@dataclass(frozen=True, slots=True)
class Launch:
    """A batch that was launched. `number` names the forward in the trace, `order` is its place in
    stream order."""

    number: int
    order: int
    batch: Batch
    slots: tuple[int, ...]  # live slots at launch: a request may be gone when this is retired
    micro_batch: int | None = None  # with pipeline stages


@dataclass(frozen=True, slots=True)
class Flight:
    """A launch and what will have come of it once its result is read."""

    launch: Launch
    result: Result

    @property
    def verified(self) -> bool:
        """It is a verify's."""
        return self.launch.batch.kind is Kind.VERIFY
