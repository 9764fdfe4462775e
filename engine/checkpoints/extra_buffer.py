"""extra_buffer: two track slots for each request, written in turn."""

from __future__ import annotations

from slotscope.engine.running import Plan, Running
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Role

from .strategy import Strategy


class ExtraBuffer(Strategy):
    """Pins three slots. A write in flight never goes to the slot with the last checkpoint."""

    slots_per_request = 3

    def open(self, running: Running) -> None:
        """Both places are filled from the start."""
        for position in (0, 1):
            lease = self.cache.take_slot(running, Role.KEEP, evict=True)
            assert lease is not None, "admit has made sure that three slots are within reach"
            running.pair.leases[position] = lease

    def plan_prefill(self, running: Running, start: int, end: int) -> Plan | None:
        """The last depth on the checkpoint grid for which prefill yields a state."""
        depth = end // self.grids.checkpoint * self.grids.checkpoint
        if depth <= start or (depth - start) % self.states.chunk:
            return None
        running.tracked = self._plan(running, depth)
        self._turn(running)
        return running.tracked

    def publish_prefill(self, running: Running) -> None:
        """By the flight's own plan, since the pointer has moved on."""
        if running.tracked:
            self._donate_and_replace(running, running.tracked)
            running.tracked = None

    def plan_decode(self, running: Running, depth: int) -> Plan | None:
        """At a track depth the step copies the live state."""
        if depth % self.grids.track:
            return None
        plan = self._plan(running, depth)
        self._turn(running)
        return plan

    def decoded(self, running: Running, plan: Plan) -> None:
        """The copy is there."""
        running.pair.depths[plan.position] = plan.depth
        self._say_swap(running, plan.position)

    def plan_verify(self, running: Running) -> Plan | None:
        """Whether it will cross is not known yet; where it would write is."""
        return self._plan(running, None)

    def verified(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """A crossing was written to the planned place: write the next one to the other."""
        if plan is None or crossed is None:
            return
        running.pair.depths[plan.position] = crossed
        running.pair.next = 1 - plan.position
        self._say_swap(running, plan.position)

    def finish(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """The deepest checkpoint whose tokens were all put out."""
        if plan is not None and (depth := plan.depth or crossed) is not None:
            running.pair.depths[plan.position] = depth
        known = len(running.request.tokens)
        depths = running.pair.depths
        best = max((0, 1), key=lambda at: d if (d := depths[at] or 0) <= known else 0)
        if (depths[best] or 0) <= known:
            self._donate_last(running, best, self.grids.checkpoint)

    def _plan(self, running: Running, depth: int | None) -> Plan:
        position = running.pair.next
        lease = running.pair.leases[position]
        assert lease is not None
        running.pair.depths[position] = None  # about to be overwritten
        return Plan(position, lease.slot, depth)

    def _turn(self, running: Running) -> None:
        running.pair.next = 1 - running.pair.next

    def _say_swap(self, running: Running, position: int) -> None:
        pair = running.pair
        lease, other = pair.leases[position], pair.leases[1 - position]
        assert lease is not None
        probe.emit(
            Op.SWAP,
            slots=lease.slot,
            src_slot=other.slot if other else None,
            request=running.request.number,
            role=Role.KEEP,
            label=pair.depths[position],
        )
