"""Stage: some of a model's layers, with the keys, values and states that are theirs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from slotscope.instrument.event import Kind

from .batch import Item, Result
from .grids import Grids
from .memory import Memory
from .models.base import Model
from .snapshot import Snapshot
from .speculation.accept import Accepted, compact
from .speculation.commit import commit
from .states import States


@dataclass(frozen=True, slots=True)
class Stage:
    """A model that is not cut is one stage."""

    model: Model
    memory: Memory
    states: States  # of this stage's layers alone

    def forward(self, snapshot: Snapshot, hidden: Tensor | None) -> Tensor:
        """Compute its layers, on slots that it initialises first where requests are new.

        Args:
            hidden: [T, H] from the stage before; None for the first.
        Returns:
            hidden [T, H].
        """
        batch = snapshot.batch
        if batch.kind is Kind.PREFILL:
            self._initialise(batch.items)
        hidden = self.model.forward(snapshot.forward, self.memory, hidden)
        self._copy_tracks(batch.items)
        return hidden

    def compact(self, snapshot: Snapshot, result: Result) -> None:
        """Of a tree: move the KV of the accepted path to where a chain's would be."""
        forward = snapshot.forward
        if forward.parents is not None:
            locations = forward.locations.view(len(snapshot.rows), -1)
            compact(self.memory, locations, snapshot.path(result))

    def commit(self, snapshot: Snapshot, result: Result, grids: Grids) -> None:
        """Move its part of the live states that `snapshot` names by what `result` accepted."""
        assert snapshot.plan is not None, "only a verify is committed"
        before = snapshot.forward.contexts[: snapshot.count]
        accepted = Accepted(result.accept_index, result.accept)
        commit(self.states, snapshot.plan, grids, before, accepted)

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
        """Of a decode step, a checkpoint is a copy of the live state after it."""
        tracked = [item for item in items if item.decodes and item.target]
        self.states.copy(
            [item.live_slot for item in tracked],
            [item.target.slot for item in tracked if item.target],
        )
