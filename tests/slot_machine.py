"""An independent judge: slots as plain Python objects that events move, one after the other.

It says what the SQL detectors must say, without SQL, windows or a fold: the pairs of a detector and
the event in which a contradiction stands, the last one of a finding's witness.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Pair = tuple[str, int]

WRITES = {"clear", "restore", "advance", "scatter", "copy"}
VOID = {"suppressed", "failed", "exists", "miss"}


@dataclass
class Slot:
    """A slot as all acts so far have left it."""

    live: bool = False
    request: int | None = None  # that owns it
    node: bool = False  # the tree owns it
    written: bool = False
    depth: int | None = None
    commit: bool = False  # the last write was one


@dataclass
class Machine:
    """Judges the events of one process."""

    slots: dict[int, Slot] = field(default_factory=lambda: defaultdict(Slot))
    said: set[Pair] = field(default_factory=set)

    def act(self, row: Row) -> None:
        """Judge one event by what its slots are, then let it change them."""
        void = row.get("outcome") in VOID
        if row["op"] in ("restore", "copy"):
            self._read(row, self.slots[row["src_slot"]])
        if row.get("slot") is None or row["op"] == "verify.plan":
            return
        slot = self.slots[row["slot"]]
        if row["op"] == "allocate":
            self._accuse("D10", slot.live, row)
            self.slots[row["slot"]] = Slot(live=True, request=row.get("request"))
        elif row["op"] == "free":
            self._accuse("D10", not slot.live, row)
            slot.live, slot.request, slot.node = False, None, False
        elif row["op"] in WRITES:
            self._write(row, slot)
        elif not void:
            self._host(row, slot)

    def _accuse(self, detector: str, guilty: bool, row: Row) -> None:
        if guilty:
            self.said.add((detector, row["seq"]))

    def _read(self, row: Row, source: Slot) -> None:
        self._accuse("D10", not source.live, row)
        if not source.live:
            return
        self._accuse("D2", not source.written, row)
        claims = {row["depth"], row.get("label", row["depth"])}
        self._accuse("D1", source.written and claims != {source.depth}, row)
        if row["op"] == "restore":
            self._accuse("D3", source.request is not None, row)
        else:
            self._accuse("D3", source.request not in (None, row["request"]), row)

    def _write(self, row: Row, slot: Slot) -> None:
        commit = row["op"] == "scatter" and row["role"] == "live"
        self._accuse("D10", not slot.live, row)
        if commit:
            taken = row.get("accept_len")  # a mutation may turn a track into half a commit
            if taken is not None:
                self._accuse("D4", taken < 1 or row["depth"] != row["depth_before"] + taken, row)
        if slot.live:
            owned = not slot.node and slot.request in (None, row["request"])
            self._accuse("D3", not owned, row)
            self._move(row, slot, moves_live=commit or row["op"] == "advance")
        slot.written, slot.depth, slot.commit = True, row["depth"], commit

    def _move(self, row: Row, slot: Slot, *, moves_live: bool) -> None:
        """What depth an act may begin at, and lead to."""
        if row.get("grid") and row["depth"] % row["grid"]:
            self._accuse("D1", True, row)
        elif not slot.written:
            return
        elif moves_live and row.get("depth_before", slot.depth) != slot.depth:
            self._accuse("D4" if slot.commit else "D1", True, row)
        elif slot.depth is not None:
            self._accuse("D1", row["depth"] < slot.depth, row)

    def _host(self, row: Row, slot: Slot) -> None:
        self._accuse("D10", not slot.live, row)
        if slot.live and row["op"] in ("donate", "insert", "match"):
            self._accuse("D2", not slot.written, row)
            off_grid = bool(row.get("grid")) and row["label"] % row["grid"] != 0
            self._accuse("D1", off_grid or (slot.written and row["label"] != slot.depth), row)
        # Whoever gives a free slot away is told so once; from then on it is taken to be held.
        if row["op"] in ("donate", "insert"):
            slot.live, slot.request, slot.node = True, None, True
        elif row["op"] == "evict":
            slot.live, slot.request, slot.node = True, None, False


def contradictions(rows: Iterable[Row]) -> set[Pair]:
    """What a sound judge says of one process's events, in whatever order they are given."""
    by_effect = sorted(rows, key=lambda row: (row["position"], row["order"]))
    by_order = sorted(by_effect, key=lambda row: int(row["order"]))
    machine = Machine()
    for row in by_effect:
        if row.get("slot") != 0 or row["op"] in ("allocate", "free"):
            machine.act(row)
    return machine.said | _commits(by_order) | _posthumous(by_order) | _leaks(by_order)


def _commits(rows: list[Row]) -> set[Pair]:
    """Each verify that was retired: one commit."""
    beats = [r["order"] for r in rows if r["op"] in ("forward.launch", "forward.done")]
    ends = {r["request"]: r["order"] for r in rows if r["op"] == "request.end"}
    done = {r["forward"]: r for r in rows if r["op"] == "forward.done"}
    commits: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        if row["op"] == "scatter" and row["role"] == "live":
            commits[row["forward"], row["request"]].append(row["seq"])
    said = set()
    for plan in (row for row in rows if row["op"] == "verify.plan"):
        read = done.get(plan["forward"])
        if read is None or max(*beats, ends.get(plan["request"], 0)) <= read["order"]:
            continue
        made = commits[plan["forward"], plan["request"]]
        if len(made) != 1:
            said.add(("D4", made[-1] if made else read["seq"]))
    return said


def _posthumous(rows: list[Row]) -> set[Pair]:
    """No slot for a request that has ended."""
    ended: set[int] = set()
    said = set()
    for row in rows:
        if row["op"] == "request.end":
            ended.add(row["request"])
        elif row["op"] == "allocate" and "slot" in row and row.get("request") in ended:
            said.add(("D10", row["seq"]))
    return said


def _leaks(rows: list[Row]) -> set[Pair]:
    """Walk the host's acts: whoever gave a slot up must have freed it by a certain launch."""
    said: set[Pair] = set()
    holder: dict[int, int | str] = {}  # slot -> request, "node", or "evicted"
    waits: dict[tuple[int, int], set[int]] = {}  # (slot, lease) -> open forwards that may name it
    leases: Counter[int] = Counter()
    owners: dict[tuple[int, int], int] = {}
    open_forwards: list[int] = []
    for row in rows:
        slot, op = row.get("slot"), row["op"]
        if op == "forward.launch":
            for key in [key for key, forwards in waits.items() if not forwards]:
                said.add(("D10", row["seq"]))
                del waits[key]
            open_forwards.append(row["forward"])
        elif op == "forward.done":
            open_forwards = [f for f in open_forwards if f != row["forward"]]
            for forwards in waits.values():
                forwards.discard(row["forward"])
        elif op == "request.end":
            for key, request in owners.items():
                mine = request == row["request"] and holder.get(key[0]) == request
                if mine and key[1] == leases[key[0]]:
                    waits[key] = set(open_forwards[-1:])
        elif op == "allocate" and slot is not None:
            waits.pop((slot, leases[slot]), None)
            leases[slot] += 1
            holder[slot] = row.get("request", "nobody")
            owners[slot, leases[slot]] = row.get("request", -1)
        elif slot is not None and (op == "free" or _gives(row)):
            waits.pop((slot, leases[slot]), None)
            holder[slot] = "node" if _gives(row) else "free"
        elif op == "evict":
            waits[row["slot"], leases[row["slot"]]] = set(open_forwards[-1:])
            holder[row["slot"]] = "evicted"
    return said


def _gives(row: Row) -> bool:
    return row["op"] in ("donate", "insert") and row.get("outcome") not in VOID
