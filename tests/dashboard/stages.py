"""Traces of a pipeline with two stages and two micro-batches, whose verifies follow one another.

Stage 1 is the last: it accepts, sends and commits; stage 0 has begun the next verify by then.
`pairing` says what stage 0 does with what it receives: `right`; `wrong`, it commits it to the
verify that it computed last; `missing`, it commits nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Role
from tests.dashboard.traces import HOOKS

STAGES = 2


@dataclass
class Member:
    """A request in its micro-batch, which has it alone."""

    number: int
    row: int
    slot: int
    depth: int


@dataclass(frozen=True)
class Verify:
    """A launched verify of one micro-batch."""

    forward: int
    launch: int
    micro_batch: int
    member: Member
    before: int

    def tell(self, op: Op, pool: int, micro_batch: int | None = None, **columns: object) -> None:
        of = self.micro_batch if micro_batch is None else micro_batch
        probe.emit(
            op, pool=pool, forward=self.forward, kind=Kind.VERIFY, micro_batch=of,
            request=self.member.number, row=self.member.row, **columns,
        )  # fmt: skip

    def commit(self, pool: int, accepted: int, result_of: int) -> None:
        self.tell(
            Op.SCATTER, pool, result_of, slots=[self.member.slot], role=Role.LIVE,
            launch=self.launch, src_row=self.member.row, step=accepted - 1, accept_len=accepted,
            depth_before=self.before, depth=self.before + accepted,
        )  # fmt: skip


def _begin(name: str, row: int) -> Member:
    member = Member(probe.request(name), row, row + 1, 64)
    probe.emit(Op.REQUEST_BEGIN, request=member.number, row=row, label=64)
    for pool in range(STAGES):
        probe.emit(
            Op.ALLOCATE, slots=[member.slot], pool=pool, request=member.number, role=Role.LIVE
        )
    return member


def _prefill(member: Member, forward: int, micro_batch: int) -> None:
    launch = probe.emit(
        Op.FORWARD_LAUNCH, forward=forward, kind=Kind.PREFILL, stream=0, micro_batch=micro_batch
    )
    for pool in range(STAGES):
        act = {"slots": [member.slot], "pool": pool, "request": member.number, "forward": forward,
               "launch": launch, "role": Role.LIVE, "micro_batch": micro_batch,
               "kind": Kind.PREFILL}  # fmt: skip
        probe.emit(Op.CLEAR, depth=0, **act)
        probe.emit(Op.ADVANCE, row=member.row, depth_before=0, depth=64, **act)
    probe.emit(
        Op.FORWARD_DONE, forward=forward, kind=Kind.PREFILL, launch=launch, micro_batch=micro_batch
    )


def _launch(member: Member, forward: int, micro_batch: int) -> Verify:
    launch = probe.emit(
        Op.FORWARD_LAUNCH, forward=forward, kind=Kind.VERIFY, stream=0, micro_batch=micro_batch
    )
    return Verify(forward, launch, micro_batch, member, member.depth)


def write(directory: Path, *, pairing: str, verifies: int = 6, name: str = "even") -> None:
    """Write one finished trace; the request of micro-batch 0 is called `name`."""
    probe.start(directory, collector=False)
    try:
        probe.note("engine.name", "slotscope")
        probe.hook("tests.dashboard.stages", HOOKS, live=True)
        members = [_begin(name, 0), _begin("odd", 1)]
        for micro_batch, member in enumerate(members):
            _prefill(member, micro_batch + 1, micro_batch)
        ahead: Verify | None = None  # on stage 1
        for turn in range(verifies + 1):
            verify: Verify | None = None
            if turn < verifies:
                verify = _launch(members[turn % 2], turn + 3, turn % 2)
                verify.tell(Op.VERIFY_PLAN, 0, src_row=verify.member.row,
                            depth_before=verify.before, launch=verify.launch)  # fmt: skip
            if ahead is not None:
                _finish(ahead, verify, pairing)
            ahead = verify
    finally:
        probe.stop()


def _finish(verify: Verify, latest: Verify | None, pairing: str) -> None:
    """Stage 1 computes and accepts two tokens; stage 0 receives that."""
    accepted = 2
    verify.tell(Op.VERIFY_PLAN, 1, src_row=verify.member.row, depth_before=verify.before,
                launch=verify.launch)  # fmt: skip
    verify.tell(Op.RELAY_SEND, 1, accept_len=accepted)
    verify.commit(1, accepted, verify.micro_batch)
    verify.tell(Op.RELAY_RECEIVE, 0, accept_len=accepted)
    moved = latest if pairing == "wrong" and latest else verify
    if pairing != "missing":
        moved.commit(0, accepted, verify.micro_batch)
    verify.member.depth += accepted
    probe.emit(
        Op.FORWARD_DONE, forward=verify.forward, kind=Kind.VERIFY, launch=verify.launch,
        micro_batch=verify.micro_batch,
    )  # fmt: skip
