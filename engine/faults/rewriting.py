"""Rewriting: a scheduler that launches other batches than were chosen.

Device and trace both follow the batch, so what is wrong in it happens, and is told.
"""

from __future__ import annotations

from slotscope.engine.batch import Batch, Flight, Item
from slotscope.engine.scheduler import Scheduler
from slotscope.instrument.event import Kind


class Rewriting(Scheduler):
    """Each batch is `rewritten` before it is launched."""

    def rewritten(self, kind: Kind, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items that are launched in place of these."""
        raise NotImplementedError

    def _launch(self, batch: Batch) -> Flight:
        return super()._launch(Batch(batch.kind, self.rewritten(batch.kind, batch.items)))
