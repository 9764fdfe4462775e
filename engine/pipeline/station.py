"""Station: a stage in its place, and the micro-batches whose results it waits for."""

from __future__ import annotations

from torch import Tensor

from slotscope.engine.batch import Flight
from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches
from slotscope.engine.snapshot import Snapshot
from slotscope.engine.stage import Stage
from slotscope.engine.telling import committed, refused, staged

from . import relay
from .error import PipelineError


class Station:
    """Knows what a verify accepted only when the last stage relays it, and has begun later
    micro-batches by then. So it keeps the snapshot of each, and commits by it: the rows of scratch
    and the slots are those of the launch that the result is of.

    In the trace its slots are those of pool `number`.
    """

    def __init__(
        self,
        stage: Stage,
        number: int,
        grids: Grids,
        patches: Patches,
        *,
        last: bool,
        commits: bool,
    ) -> None:
        self._stage, self.number, self._grids = stage, number, grids
        self._commits = commits and (last or patches.on("pp-stage-commit"))
        self._pairs = patches.on("pp-pair-by-microbatch")
        self._verifies: dict[int, Snapshot] = {}  # micro-batch -> its verify, not committed yet
        self._latest: Snapshot | None = None  # the verify that was computed last

    def compute(self, snapshot: Snapshot, hidden: Tensor | None) -> Tensor:
        """Its layers of a batch, [T, H] to [T, H]; the first stage takes None."""
        launch = snapshot.launch
        staged(launch, self._grids, self.number, snapshot.scratch)
        if snapshot.plan and launch.micro_batch is not None:
            self._verifies[launch.micro_batch] = self._latest = snapshot
        return self._stage.forward(snapshot, hidden)

    def receive(self, flight: Flight) -> None:
        """Commit a verify whose result was relayed.

        Raises:
            PipelineError: the result is of another batch than the one it would be committed to.
        """
        relay.received(flight, self.number)
        self.commit(flight, paired=self._pairs)

    def commit(self, flight: Flight, *, paired: bool = True) -> None:
        """Move this stage's part of the live states by what was accepted.

        `paired` is false where a result is taken for that of the latest verify, whose slots and
        rows are at hand.
        """
        launch = flight.launch
        assert launch.micro_batch is not None, "a pipeline numbers its micro-batches"
        own = self._verifies.pop(launch.micro_batch)
        self._stage.compact(own, flight.result)
        if not self._commits:
            return
        snapshot = own if paired or self._latest is None else self._latest
        if len(flight.result.accept) != snapshot.count:
            self._refuse(flight, snapshot)
        committed(
            snapshot.launch,
            snapshot.forward.contexts[: snapshot.count].tolist(),
            flight.result.paths(),
            self._grids,
            self.number,
            scratch=snapshot.scratch,
            micro_batch=launch.micro_batch,
        )
        self._stage.commit(snapshot, flight.result, self._grids)

    def _refuse(self, flight: Flight, snapshot: Snapshot) -> None:
        mine, theirs = snapshot.launch, flight.launch
        assert theirs.micro_batch is not None, "a pipeline numbers its micro-batches"
        refused(mine, flight.result.accept.tolist(), self.number, theirs.micro_batch)
        raise PipelineError(
            f"stage {self.number} was relayed what forward {theirs.number} of micro-batch "
            f"{theirs.micro_batch} accepted for {len(theirs.slots)} requests, but would commit it "
            f"to the {len(mine.slots)} slots of forward {mine.number} of micro-batch "
            f"{mine.micro_batch}. States would move by what other requests accepted. Pair a result "
            "with the snapshot of its own micro-batch: leave pp-pair-by-microbatch on."
        )
