"""no_buffer: the live state is the only one; the tree gets a copy, at the end the slot itself."""

from __future__ import annotations

from slotscope.engine.running import Running, Target
from slotscope.instrument.event import Op, Role

from .strategy import Strategy


class NoBuffer(Strategy):
    """Pins one slot. Any depth will do, so there is no grid; needs page size 1 and no overlap."""

    slots_per_request = 1

    def open(self, running: Running) -> None:
        """There is no track slot to take."""

    def aim_prefill(self, running: Running, start: int, end: int) -> Target | None:
        """Nothing is written in the forward; the copy is made when it is over."""
        return None

    def publish_prefill(self, running: Running) -> None:
        """Copy the live state for the tree: the request goes on with its own."""
        live, depth = running.live, running.length
        assert live is not None
        if depth <= running.shared:
            return
        copy = self.cache.take_slot(running, Role.KEEP, evict=True)
        if copy is None:
            return
        self.states.copy([live.slot], [copy.slot])
        self.cache.slots.tell(
            Op.COPY,
            slots=copy.slot,
            src_slot=live.slot,
            request=running.number,
            role=Role.NODE,
            depth=depth,
        )
        if not self.cache.publish(running, copy, depth, Role.KEEP, None):
            self.cache.free_slot(running, copy, Role.KEEP)

    def aim_decode(self, running: Running, depth: int) -> Target | None:
        """Decode leaves no checkpoint."""
        return None

    def decoded(self, running: Running, target: Target) -> None:
        """Never called: there are no targets."""

    def aim_verify(self, running: Running) -> Target | None:
        """Nor does a verify."""
        return None

    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """Nothing to keep."""

    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """The live slot itself is the checkpoint, unless a verify has taken it past the output."""
        live = running.live
        assert live is not None
        if running.length > len(running.request.tokens):
            return
        depth, ring = running.length, running.pending
        if self.cache.publish(running, live, depth, Role.LIVE, None, ring=ring):
            running.live = None
