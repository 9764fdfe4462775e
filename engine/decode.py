"""Decode: which running requests take a step, and what that step may write."""

from __future__ import annotations

from slotscope.instrument.event import Kind

from .batch import Batch, Item
from .cache import Cache
from .cadence import Cadence
from .checkpoints import Strategy
from .config import EngineConfig
from .headroom import Headroom
from .rows import Grown
from .running import Running


class Decode:
    """All requests whose prompt is launched step together, as a decode or as a verify."""

    def __init__(
        self, config: EngineConfig, cache: Cache, strategy: Strategy, cadence: Cadence
    ) -> None:
        self._cache, self._strategy, self._cadence = cache, strategy, cadence
        self._draft_tokens, self._draft_room = config.draft_tokens, config.draft_room
        self._headroom = Headroom()
        self.running: list[Running] = []

    @property
    def headroom(self) -> int:
        """KV locations to keep free for what those who decode have yet to put out."""
        return self._headroom.tokens(self.running)

    def make_room(self, micro_batch: int = 0) -> Running | None:
        """Take KV for a step of everybody in the micro-batch. Where it is short: who of them must
        be retracted, before this is asked again. Others may be in flight on pipeline stages.

        That is SGLang's choice: who has put out the least, of these the longest prompt, of these
        the last that came. The one that has put out the most always goes on, and no request is
        taken that could not go on alone.
        """
        grown: list[Grown] = []
        stepping = self._of(micro_batch)
        enough = all(self._grow(running, grown) for running in stepping)
        self._cache.rows.extend(grown)
        if enough:
            return None
        return min(
            reversed(stepping), key=lambda r: (len(r.request.output), -len(r.request.prompt))
        )

    def gave_way(self) -> None:
        """Somebody was retracted for those who run now."""
        self._headroom.retracted(self.running)

    def next_batch(self, micro_batch: int = 0) -> Batch | None:
        """One step of everybody in the micro-batch; `make_room` has made sure of their KV."""
        stepping = self._of(micro_batch)
        if not stepping:
            return None
        self._headroom.stepped()
        if self._draft_tokens:
            return Batch(Kind.VERIFY, tuple(self._verify(each) for each in stepping))
        return Batch(Kind.DECODE, tuple(self._step(each, alone=True) for each in stepping))

    def join(self, prefill: Batch, micro_batch: int = 0) -> Batch:
        """A mixed prefill: beside its chunks a decode step of everybody whom KV allows one.

        Nobody is retracted for that. Who is left out steps when no prompt is at hand.
        """
        grown: list[Grown] = []
        stepping = [each for each in self._of(micro_batch) if self._grow(each, grown)]
        self._cache.rows.extend(grown)
        steps = tuple(self._step(running, alone=False) for running in stepping)
        return Batch(prefill.kind, prefill.items + steps)

    def _of(self, micro_batch: int) -> list[Running]:
        return [each for each in self.running if each.micro_batch == micro_batch]

    def _grow(self, running: Running, grown: list[Grown]) -> bool:
        """Take KV for its next step, and note in `grown` what was taken; False if it is short."""
        before = len(running.locations)
        more = self._cache.grow(running, self._reach(running))
        if more:
            grown.append((running.row, before, more))
        return more is not None

    def _reach(self, running: Running) -> int:
        """KV after its next step, at most: verifies in flight may accept all that they feed."""
        if not self._draft_tokens:
            return running.length + 1
        return running.length + len(running.outstanding) * self._draft_tokens + self._draft_room

    def _step(self, running: Running, *, alone: bool) -> Item:
        """A step, alone or beside the prompts of a mixed prefill, which moves states themselves."""
        start, pending = running.length, running.pending
        running.length += 1
        target = self._strategy.aim_decode(running, running.length)
        folds = not alone or self._cadence.folds(pending, start, running.length)
        item = Item(
            running, start, running.length, target, pending=pending, folds=folds, decodes=True
        )
        running.pending = item.left
        return item

    def _verify(self, running: Running) -> Item:
        target = self._strategy.aim_verify(running)
        running.outstanding.append(target)
        return Item(running, running.length, running.length, target)
