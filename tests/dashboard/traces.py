"""Traces with a known story, said through the probe as an engine would say them.

`aliased` is the bug of a prefill donation: the first verify is launched while no spare slot is to
be had, so its plan names the keep slot; the prefill then donates that slot under depth 192, and the
verify in flight puts the state of depth 256 into it. Otherwise a spare slot is at hand.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slotscope.instrument import probe
from slotscope.instrument.event import Kind, Op, Outcome, Role, Unit

GRID = 64
HOOKS = [op for op in Op if op is not Op.AMEND]


@dataclass
class Storyteller:
    """Numbers forwards, nodes and free slots, so that a story reads as acts, not as bookkeeping."""

    free: list[int] = field(default_factory=lambda: list(range(1, 13)))
    forwards: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    nodes: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    rows: itertools.count[int] = field(default_factory=lambda: itertools.count(0))

    def begin(self, name: str, prompt: int) -> tuple[int, int]:
        """Admit a request of `prompt` tokens: (its number, its row)."""
        request, row = probe.request(name), next(self.rows)
        probe.emit(Op.REQUEST_BEGIN, request=request, row=row, label=prompt)
        return request, row

    def allocate(self, request: int, role: Role) -> int:
        slot = self.free.pop(0)
        probe.emit(Op.ALLOCATE, slots=[slot], request=request, role=role)
        return slot

    def release(self, slot: int, request: int | None, role: Role) -> None:
        probe.emit(Op.FREE, slots=[slot], request=request, role=role)
        self.free.append(slot)

    def launch(self, kind: Kind) -> tuple[int, int]:
        """Launch a forward: (its number, its launch order)."""
        forward = next(self.forwards)
        return forward, probe.emit(Op.FORWARD_LAUNCH, forward=forward, kind=kind, stream=0)

    def done(self, flight: tuple[int, int], kind: Kind) -> None:
        probe.emit(Op.FORWARD_DONE, forward=flight[0], launch=flight[1], kind=kind)

    def prefill(self, request: int, row: int, live: int, keep: int, prompt: int) -> tuple[int, int]:
        """Advance an empty state over the prompt, and track its last checkpoint into `keep`."""
        forward, launch = flight = self.launch(Kind.PREFILL)
        act: dict[str, Any] = {"request": request, "forward": forward, "launch": launch}
        boundary = prompt // GRID * GRID
        probe.emit(Op.CLEAR, slots=[live], depth=0, role=Role.LIVE, **act)
        probe.emit(
            Op.ADVANCE, slots=[live], depth_before=0, depth=prompt, row=row, role=Role.LIVE, **act
        )
        probe.emit(
            Op.SCATTER, slots=[keep], depth=boundary, grid=GRID, role=Role.KEEP, unit=Unit.CHUNK,
            step=boundary // GRID - 1, **act,
        )  # fmt: skip
        return flight

    def donate(self, request: int, slot: int, label: int, role: Role) -> int:
        """Give a slot to a new node of the tree, which files it under `label`."""
        node = next(self.nodes)
        given: dict[str, Any] = {
            "slots": [slot],
            "request": request,
            "label": label,
            "node": node,
            "grid": GRID,
        }
        probe.emit(Op.DONATE, role=role, **given)
        probe.emit(Op.INSERT, **given)
        return node

    def decode(self, request: int, row: int, live: int, depth: int, steps: int) -> int:
        """Plain decode, one forward after the other. Returns the depth reached."""
        for _ in range(steps):
            forward, launch = flight = self.launch(Kind.DECODE)
            probe.emit(
                Op.ADVANCE, slots=[live], request=request, row=row, forward=forward, launch=launch,
                depth_before=depth, depth=depth + 1, role=Role.LIVE,
            )  # fmt: skip
            self.done(flight, Kind.DECODE)
            depth += 1
        return depth

    def finish(self, request: int, row: int, live: int, depth: int) -> None:
        probe.emit(Op.REQUEST_END, request=request, row=row, depth=depth, outcome=Outcome.FINISHED)
        self.release(live, request, Role.LIVE)


def conversation(tell: Storyteller, name: str, prompt: int, steps: int) -> None:
    """A request as it should be: prefill, checkpoint donated, decode, end."""
    request, row = tell.begin(name, prompt)
    live, keep = tell.allocate(request, Role.LIVE), tell.allocate(request, Role.KEEP)
    flight = tell.prefill(request, row, live, keep, prompt)
    tell.done(flight, Kind.PREFILL)
    tell.donate(request, keep, prompt // GRID * GRID, Role.KEEP)
    tell.finish(request, row, live, tell.decode(request, row, live, prompt, steps))


def speculative(tell: Storyteller, name: str, *, spare: bool) -> tuple[int, int]:
    """A 255-token prompt whose first verify crosses 256. Returns (node, slot) of its checkpoint.

    With a `spare` slot the verify tracks into it; without one, in place into the keep slot.
    """
    request, row = tell.begin(name, 255)
    live, keep = tell.allocate(request, Role.LIVE), tell.allocate(request, Role.KEEP)
    prefill = tell.prefill(request, row, live, keep, 255)
    role = Role.SPARE if spare else Role.KEEP
    if spare:
        target = tell.allocate(request, Role.SPARE)
    else:
        probe.emit(Op.ALLOCATE, request=request, role=Role.SPARE, outcome=Outcome.FAILED)
        target = keep
    forward, launch = verify = tell.launch(Kind.VERIFY)
    act: dict[str, Any] = {"request": request, "row": row, "forward": forward, "launch": launch}
    probe.emit(
        Op.VERIFY_PLAN, slots=[target], request=request, row=row, forward=forward,
        depth_before=255, role=role, outcome=None if spare else Outcome.IN_PLACE,
    )  # fmt: skip
    tell.done(prefill, Kind.PREFILL)
    node = tell.donate(request, keep, 192, Role.KEEP)
    tell.done(verify, Kind.VERIFY)
    taken: dict[str, Any] = {"src_row": row, **act}
    probe.emit(
        Op.SCATTER, slots=[live], role=Role.LIVE, step=2, accept_len=3, depth_before=255,
        depth=258, **taken,
    )  # fmt: skip
    probe.emit(Op.SCATTER, slots=[target], role=role, step=0, depth=256, grid=GRID, **taken)
    if spare:
        probe.emit(Op.SWAP, slots=[target], request=request, src_slot=keep, label=256)
    depth = tell.decode(request, row, live, 258, 3)
    if spare:
        tell.donate(request, target, 256, Role.KEEP)
    tell.finish(request, row, live, depth)
    return node, keep


def repeat(tell: Storyteller, name: str, node: int, slot: int) -> None:
    """Another request with the same prompt: it is given the checkpoint and runs on from there."""
    request, row = tell.begin(name, 255)
    probe.emit(Op.MATCH, slots=[slot], request=request, node=node, label=192, outcome=Outcome.HIT)
    live = tell.allocate(request, Role.LIVE)
    forward, launch = flight = tell.launch(Kind.PREFILL)
    act: dict[str, Any] = {
        "request": request,
        "forward": forward,
        "launch": launch,
        "role": Role.LIVE,
    }
    probe.emit(Op.RESTORE, slots=[live], src_slot=slot, node=node, label=192, depth=192, **act)
    probe.emit(Op.ADVANCE, slots=[live], row=row, depth_before=192, depth=255, **act)
    tell.done(flight, Kind.PREFILL)
    tell.finish(request, row, live, tell.decode(request, row, live, 255, 4))


def write(directory: Path, *, aliased: bool, name: str = "chat-repeat") -> None:
    """Write one finished trace: four conversations, a speculative one, and its repeat as `name`."""
    probe.start(directory, collector=False)
    try:
        for key, value in (
            ("engine.name", "slotscope"),
            ("engine.model_path", "bundled"),
            ("engine.mamba_radix_cache_strategy", "extra_buffer_lazy"),
            ("engine.max_mamba_cache_size", 12),
            ("engine.without_patch", "prefill-donation-guard" if aliased else ""),
        ):
            probe.note(key, value)
        probe.hook("tests.dashboard.traces", HOOKS, live=True)
        tell = Storyteller()
        conversation(tell, "chat-0001", 130, 6)
        conversation(tell, "chat-0002", 70, 4)
        node, slot = speculative(tell, "chat-0003", spare=not aliased)
        conversation(tell, "chat-0004", 200, 5)
        repeat(tell, name, node, slot)
    finally:
        probe.stop()
