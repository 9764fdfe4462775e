"""extra_buffer_lazy: one track slot for each request, and a spare only where a crossing is near."""

from __future__ import annotations

from slotscope.engine.running import Running, Target
from slotscope.instrument.event import Op, Outcome, Role

from .strategy import Strategy


class ExtraBufferLazy(Strategy):
    """Pins two slots: the live one and the *keep*, which holds the last checkpoint. The pair's
    other place is empty, or holds the *spare* that a step in flight may write.

    A spare is prepared before it is known whether the step will cross. Once that is confirmed the
    spare is promoted to keep. Without a spare a verify writes its crossing into the keep itself
    (in place), so a keep that such a verify wrote or may yet write must not be donated under the
    depth it had.
    """

    slots_per_request = 2

    def open(self, running: Running) -> None:
        """Take the keep."""
        lease = self.cache.take_slot(running, Role.KEEP, evict=True)
        assert lease is not None, "admit has made sure that two slots are within reach"
        running.pair.leases[running.pair.keep] = lease

    def aim_prefill(self, running: Running, start: int, end: int) -> Target | None:
        """Into the keep: what it held was published before this chunk."""
        depth = self._prefill_depth(start, end)
        if depth is None:
            return None
        keep = running.pair.keep
        running.pair.depths[keep] = None  # about to be overwritten
        running.tracked = Target(keep, self._lease(running, keep).slot, Role.KEEP, depth)
        return running.tracked

    def publish_prefill(self, running: Running) -> None:
        """Donate the keep, unless a verify that is already launched may write it in place.

        Then the donation waits: the first verify's result repairs the label, and the checkpoint is
        donated when the request finishes, under the depth it has by then.
        """
        target = running.tracked
        if target is None:
            return
        running.tracked = None
        if self._written_in_flight(running) and self.patches.on("prefill-donation-guard"):
            running.pair.depths[target.position] = target.depth
            self._suppress(running)
            return
        self._donate_and_replace(running, target)

    def aim_decode(self, running: Running, depth: int) -> Target | None:
        """At a track depth the step copies the live state to a spare; without one it does not."""
        return None if depth % self.grids.track else self._aim_at_spare(running, depth)

    def decoded(self, running: Running, target: Target) -> None:
        """The copy is there."""
        self._promote(running, target.position, target.depth)

    def aim_verify(self, running: Running) -> Target | None:
        """Where a crossing would go, if one is within reach."""
        if not self.grids.reachable(running.length, self.config.draft_tokens):
            return None
        keep = running.pair.keep
        in_place = Target(keep, self._lease(running, keep).slot, Role.KEEP)
        return self._aim_at_spare(running, None) or in_place

    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """A crossing is confirmed: promote the spare, or repair the label of the keep."""
        if target is not None and crossed is not None:
            if target.position == running.pair.keep:
                running.pair.depths[target.position] = crossed
                self._move_keep(running, target.position, Outcome.IN_PLACE)
            else:
                self._promote(running, target.position, crossed)
        self._drop_idle_spare(running)

    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """Donate the keep, unless a verify wrote it in place just now, or one in flight may."""
        written_now = target is not None and target.in_place and crossed is not None
        unsafe = written_now or self._written_in_flight(running)
        guard = "prefill-donation-guard" if running.tracked else "lazy-finish-guard"
        if unsafe and self.patches.on(guard):
            self._suppress(running)
            return
        if target is not None and target.depth is not None:  # known at launch, so it is settled
            if target.position == running.pair.keep:
                running.pair.depths[target.position] = target.depth
            else:
                self._promote(running, target.position, target.depth)
        self._donate_last(running, running.pair.keep)

    def _written_in_flight(self, running: Running) -> bool:
        return any(target is not None and target.in_place for target in running.outstanding)

    def _aim_at_spare(self, running: Running, depth: int | None) -> Target | None:
        """Take a spare if there is none. A transient slot is not worth a cached checkpoint, so
        nothing is evicted for it."""
        pair, position = running.pair, 1 - running.pair.keep
        if pair.leases[position] is None:
            if self.config.fail_spare_slots:
                number = running.number
                self.cache.slots.tell(
                    Op.ALLOCATE, request=number, role=Role.SPARE, outcome=Outcome.FAILED
                )
                return None
            evict = not self.patches.on("no-evict-for-spare")
            pair.leases[position] = self.cache.take_slot(running, Role.SPARE, evict=evict)
        lease = pair.leases[position]
        return None if lease is None else Target(position, lease.slot, Role.SPARE, depth)

    def _promote(self, running: Running, position: int, depth: int | None) -> None:
        running.pair.depths[position] = depth
        self._move_keep(running, position)
        self.cache.free_slot(running, self._lease(running, 1 - position), Role.KEEP)
        running.pair.leases[1 - position] = running.pair.depths[1 - position] = None

    def _drop_idle_spare(self, running: Running) -> None:
        """Where a crossing went in place, a spare that was taken since has no use for long."""
        position = 1 - running.pair.keep
        named = any(target and target.position == position for target in running.outstanding)
        if not named and not self.grids.reachable(running.length, self.config.draft_tokens):
            self._free(running, position)

    def _role(self, running: Running, position: int) -> Role:
        return Role.KEEP if position == running.pair.keep else Role.SPARE
