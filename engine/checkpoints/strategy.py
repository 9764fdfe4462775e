"""What a checkpoint strategy decides. The names are SGLang's `--mamba-radix-cache-strategy`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from slotscope.engine.cache import Cache
from slotscope.engine.config import EngineConfig
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.running import Plan, Running
from slotscope.engine.states import States
from slotscope.instrument import probe
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
    def plan_prefill(self, running: Running, start: int, end: int) -> Plan | None:
        """A chunk of tokens [start, end) is about to be launched."""

    @abstractmethod
    def publish_prefill(self, running: Running) -> None:
        """Donate what the last chunk left. Called before the next chunk is launched, or when the
        last one is retired and the request goes on."""

    @abstractmethod
    def plan_decode(self, running: Running, depth: int) -> Plan | None:
        """A step that moves the state to `depth` is about to be launched."""

    @abstractmethod
    def decoded(self, running: Running, plan: Plan) -> None:
        """The step that had this plan is retired, and the request goes on."""

    @abstractmethod
    def plan_verify(self, running: Running) -> Plan | None:
        """A verify is about to be launched."""

    @abstractmethod
    def verified(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """A verify is retired, and the request goes on. `crossed`: the track depth it passed."""

    @abstractmethod
    def finish(self, running: Running, plan: Plan | None, crossed: int | None) -> None:
        """A request ends well: donate its best checkpoint if that is safe. `plan` and `crossed`
        are those of the step that ended it."""

    def close(self, running: Running) -> None:
        """Free the track slots that are left. Nothing is donated."""
        for position, lease in enumerate(running.pair.leases):
            if lease is not None:
                self.cache.free_slot(running, lease, self._role(running, position))
                running.pair.leases[position] = None

    def _role(self, running: Running, position: int) -> Role:
        return Role.KEEP

    def _donate_and_replace(self, running: Running, plan: Plan) -> None:
        """Donate the slot at the plan's position and go on with a new one in its place.

        Where no slot can be had for that, the checkpoint stays with the request, which may still
        donate it when it finishes.
        """
        pair, position = running.pair, plan.position
        lease, depth = pair.leases[position], plan.depth
        assert lease is not None
        assert depth is not None
        pair.depths[position] = depth
        if depth <= running.shared:
            return
        new = self.cache.take_slot(running, Role.KEEP, evict=True)
        if new is None:
            return
        if self.cache.publish(running, lease, depth, Role.KEEP, self.grids.checkpoint):
            pair.leases[position], pair.depths[position] = new, None
        else:
            self.cache.free_slot(running, new, Role.KEEP)

    def _donate_last(self, running: Running, position: int, grid: int) -> None:
        """Donate the slot at this position, at the request's end."""
        pair = running.pair
        lease, depth = pair.leases[position], pair.depths[position]
        if lease is None or depth is None:
            return
        if self.cache.publish(running, lease, depth, Role.KEEP, grid):
            pair.leases[position] = None

    def _suppress(self, running: Running, position: int) -> None:
        """Tell the trace of a checkpoint that is kept back."""
        lease = running.pair.leases[position]
        if lease is not None:
            probe.emit(
                Op.DONATE,
                slots=lease.slot,
                request=running.request.number,
                role=Role.KEEP,
                label=running.pair.depths[position],
                outcome=Outcome.SUPPRESSED,
            )
