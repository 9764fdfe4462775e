"""extra_buffer_lazy: one track slot for each request, and a spare only where a crossing is near."""

from __future__ import annotations

from slotscope.engine.running import Plan, Running
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Outcome, Role

from .strategy import Strategy


class ExtraBufferLazy(Strategy):
    """Pins two slots. `pair.next` is the *keep*, which holds the last checkpoint; the other place
    is empty, or holds the *spare* that a step in flight may write.

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
        running.pair.leases[0] = lease

    def plan_prefill(self, running: Running, start: int, end: int) -> Plan | None:
        """The last depth on the checkpoint grid for which prefill yields a state, into the keep."""
        depth = end // self.grids.checkpoint * self.grids.checkpoint
        if depth <= start or (depth - start) % self.states.chunk:
            return None
        lease = running.pair.leases[running.pair.next]
        assert lease is not None
        running.pair.depths[running.pair.next] = None  # about to be overwritten
        running.tracked = Plan(running.pair.next, lease.slot, depth)
        return running.tracked

    def publish_prefill(self, running: Running) -> None:
        """Donate the keep, unless a verify that is already launched may write it in place.

        Then the donation waits: the first verify's result repairs the label, and the checkpoint is
        donated when the request finishes, under the depth it has by then.
        """
        plan = running.tracked
        if plan is None:
            return
        running.tracked = None
        if self._written_in_flight(running) and self.patches.on("prefill-donation-guard"):
            running.pair.depths[plan.position] = plan.depth
            self._suppress(running, plan.position)
            return
        self._donate_and_replace(running, plan)

    def plan_decode(self, running: Running, depth: int) -> Plan | None:
        """At a track depth the step copies the live state to a spare; without one it does not."""
        if depth % self.grids.track:
            return None
        spare = self._spare(running)
        return None if spare is None else Plan(1 - running.pair.next, spare, depth)

    def decoded(self, running: Running, plan: Plan) -> None:
        """The copy is there."""
        self._promote(running, plan.position, plan.depth)

    def plan_verify(self, running: Running) -> Plan | None:
        """Where a crossing would go, if one is within reach."""
        if not self.grids.reachable(running.length, self.config.draft_tokens):
            return None
        keep = running.pair.leases[running.pair.next]
        spare = self._spare(running)
        if spare is not None:
            return Plan(1 - running.pair.next, spare)
        return Plan(running.pair.next, keep.slot, in_place=True) if keep else None

    def verified(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """A crossing is confirmed: promote the spare, or repair the label of the keep."""
        if plan is None or crossed is None:
            return
        if plan.position != running.pair.next:
            self._promote(running, plan.position, crossed)
            return
        running.pair.depths[plan.position] = crossed
        self._say_swap(running, None, Outcome.IN_PLACE)

    def finish(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """Donate the keep, unless a verify wrote it in place just now, or one in flight may."""
        written_now = plan is not None and plan.in_place and crossed is not None
        unsafe = written_now or self._written_in_flight(running)
        guard = "prefill-donation-guard" if running.tracked else "lazy-finish-guard"
        if unsafe and self.patches.on(guard):
            self._suppress(running, running.pair.next)
            return
        if plan is not None and plan.depth is not None:  # known at launch, so it is settled
            if plan.position == running.pair.next:
                running.pair.depths[plan.position] = plan.depth
            else:
                self._promote(running, plan.position, plan.depth)
        self._donate_last(running, running.pair.next, self.grids.checkpoint)

    def _written_in_flight(self, running: Running) -> bool:
        return any(plan is not None and plan.in_place for plan in running.outstanding)

    def _spare(self, running: Running) -> int | None:
        """The slot of the spare, taken if there is none. A transient slot is not worth a cached
        checkpoint, so nothing is evicted for it."""
        pair, number = running.pair, running.request.number
        position = 1 - pair.next
        if pair.leases[position] is None:
            if self.config.fail_spare_slots:
                probe.emit(Op.ALLOCATE, request=number, role=Role.SPARE, outcome=Outcome.FAILED)
                return None
            evict = not self.patches.on("no-evict-for-spare")
            pair.leases[position] = self.cache.take_slot(running, Role.SPARE, evict=evict)
        lease = pair.leases[position]
        return None if lease is None else lease.slot

    def _promote(self, running: Running, position: int, depth: int | None) -> None:
        pair, old = running.pair, 1 - position
        replaced = pair.leases[old]
        pair.next, pair.depths = position, [None, None]
        pair.depths[position] = depth
        self._say_swap(running, replaced.slot if replaced else None, None)
        if replaced is not None:
            self.cache.free_slot(running, replaced, Role.KEEP)
            pair.leases[old] = None

    def _say_swap(self, running: Running, old: int | None, outcome: Outcome | None) -> None:
        lease = running.pair.leases[running.pair.next]
        assert lease is not None
        probe.emit(
            Op.SWAP,
            slots=lease.slot,
            src_slot=old,
            request=running.request.number,
            role=Role.KEEP,
            label=running.pair.depths[running.pair.next],
            outcome=outcome,
        )

    def _role(self, running: Running, position: int) -> Role:
        return Role.KEEP if position == running.pair.next else Role.SPARE
