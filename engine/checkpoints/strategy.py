"""What a checkpoint strategy decides. The names are SGLang's `--mamba-radix-cache-strategy`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from slotscope.engine.cache import Cache
from slotscope.engine.config import EngineConfig
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.running import Running, Target
from slotscope.engine.slots import Lease
from slotscope.engine.states import States
from slotscope.instrument.event import Op, Outcome, Role


class Strategy(ABC):
    """Asked at each launch where a checkpoint may go, told at each retirement what went there."""

    slots_per_request: int
    """Slots that a running request pins, its live slot included."""

    def __init__(
        self, cache: Cache, states: States, grids: Grids, patches: Patches, config: EngineConfig
    ) -> None:
        self.cache, self.states, self.grids = cache, states, grids
        self.patches, self.config = patches, config

    @abstractmethod
    def open(self, running: Running) -> None:
        """A request is admitted: take its track slots. `Cache.admit` has made sure of them."""

    @abstractmethod
    def aim_prefill(self, running: Running, start: int, end: int) -> Target | None:
        """A chunk of tokens [start, end) is about to be launched."""

    @abstractmethod
    def publish_prefill(self, running: Running) -> None:
        """Donate what the last chunk left. Called before the next chunk is launched, or when the
        last one is retired and the request goes on."""

    @abstractmethod
    def aim_decode(self, running: Running, depth: int) -> Target | None:
        """A step that moves the state to `depth` is about to be launched."""

    @abstractmethod
    def decoded(self, running: Running, target: Target) -> None:
        """The step that had this target is retired, and the request goes on."""

    @abstractmethod
    def aim_verify(self, running: Running) -> Target | None:
        """A verify is about to be launched."""

    @abstractmethod
    def verified(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """A verify is retired, and the request goes on. `crossed`: the track depth it passed."""

    @abstractmethod
    def finish(self, running: Running, target: Target | None, crossed: int | None) -> None:
        """A request ends well: donate its best checkpoint if that is safe. `target` and `crossed`
        are those of the step that ended it."""

    def close(self, running: Running) -> None:
        """Free the track slots that are left. Nothing is donated."""
        for position in (0, 1):
            self._free(running, position)

    def _role(self, running: Running, position: int) -> Role:
        return Role.KEEP

    def _prefill_depth(self, start: int, end: int) -> int | None:
        """The last depth on the checkpoint grid for which a chunk yields a state."""
        depth = end // self.grids.checkpoint * self.grids.checkpoint
        return None if depth <= start or (depth - start) % self.states.chunk else depth

    def _donate_and_replace(self, running: Running, target: Target) -> None:
        """Donate the slot at the target's position and go on with a new one in its place.

        Where no slot can be had for that, the checkpoint stays with the request, which may still
        donate it when it finishes.
        """
        pair, position, depth = running.pair, target.position, target.depth
        assert depth is not None, "prefill knows at launch what it tracks"
        pair.depths[position] = depth
        if depth <= running.shared:
            return
        new = self.cache.take_slot(running, Role.KEEP, evict=True)
        if new is None:
            return
        lease = self._lease(running, position)
        if self.cache.publish(running, lease, depth, Role.KEEP, self.grids.checkpoint):
            pair.leases[position], pair.depths[position] = new, None
        else:
            self.cache.free_slot(running, new, Role.KEEP)

    def _donate_last(self, running: Running, position: int) -> None:
        """Donate the slot at this position, at the request's end."""
        pair = running.pair
        lease, depth = pair.leases[position], pair.depths[position]
        if lease is None or depth is None:
            return
        if self.cache.publish(running, lease, depth, Role.KEEP, self.grids.checkpoint):
            pair.leases[position] = None

    def _suppress(self, running: Running) -> None:
        """Tell the trace that the keep is held back."""
        pair = running.pair
        self.cache.slots.tell(
            Op.DONATE,
            slots=self._lease(running, pair.keep).slot,
            request=running.number,
            role=Role.KEEP,
            label=pair.depths[pair.keep],
            outcome=Outcome.SUPPRESSED,
        )

    def _move_keep(self, running: Running, position: int, outcome: Outcome | None = None) -> None:
        """The last checkpoint is at `position` now, whose depth is set; tell the trace."""
        pair = running.pair
        old = pair.leases[1 - position]
        pair.keep = position
        self.cache.slots.tell(
            Op.SWAP,
            slots=self._lease(running, position).slot,
            src_slot=None if old is None or outcome is Outcome.IN_PLACE else old.slot,
            request=running.number,
            role=Role.KEEP,
            label=pair.depths[position],
            outcome=outcome,
        )

    def _lease(self, running: Running, position: int) -> Lease:
        lease = running.pair.leases[position]
        assert lease is not None, "the strategy fills a place before it names it"
        return lease

    def _free(self, running: Running, position: int) -> None:
        lease = running.pair.leases[position]
        if lease is not None:
            self.cache.free_slot(running, lease, self._role(running, position))
            running.pair.leases[position] = running.pair.depths[position] = None
