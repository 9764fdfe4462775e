"""extra_buffer: two track slots for each request, written in turn."""

from __future__ import annotations

from slotscope.engine.running import Running, Target
from slotscope.instrument.event import Role

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

    def aim_prefill(self, running: Running, start: int, end: int) -> Target | None:
        """The write is sure, so the place that it goes to is the keep from now on."""
        depth = self._prefill_depth(start, end)
        if depth is None:
            return None
        running.tracked = self._aim(running, depth)
        running.pair.keep = running.tracked.position
        return running.tracked

    def publish_prefill(self, running: Running) -> None:
        """By the chunk's own target, since the keep may have moved on."""
        if running.tracked:
            self._donate_and_replace(running, running.tracked)
            running.tracked = None

    def aim_decode(self, running: Running, depth: int) -> Target | None:
        """At a track depth the step copies the live state."""
        if depth % self.grids.track:
            return None
        target = self._aim(running, depth)
        running.pair.keep = target.position
        return target

    def decoded(self, running: Running, target: Target) -> None:
        """The copy is there."""
        running.pair.depths[target.position] = target.depth
        self._move_keep(running, target.position)

    def aim_verify(self, running: Running) -> Target | None:
        """Whether it will cross is not known yet; where it would write is."""
        return self._aim(running, None)

    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """A crossing was written to its target: that is the keep now."""
        if target is not None and crossed is not None:
            running.pair.depths[target.position] = crossed
            self._move_keep(running, target.position)

    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """The deepest checkpoint whose tokens were all put out."""
        depths, known = running.pair.depths, len(running.request.tokens)
        if target is not None and (depth := target.depth or crossed) is not None:
            depths[target.position] = depth
        usable = [at for at in (0, 1) if (depths[at] or known + 1) <= known]
        if usable:
            self._donate_last(running, max(usable, key=lambda at: depths[at] or 0))

    def _aim(self, running: Running, depth: int | None) -> Target:
        position = 1 - running.pair.keep
        running.pair.depths[position] = None  # it may be overwritten from now on
        # Not the keep's own slot, so a verify with this target is never in place.
        return Target(position, self._lease(running, position).slot, Role.SPARE, depth)
