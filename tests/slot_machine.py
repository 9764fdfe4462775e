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
    role: str | None = None  # it was allocated as
    node: bool = False  # the tree owns it
    written: bool = False
    depth: int | None = None
    commit: bool = False  # the last write was one
    home: int | None = None  # node that it was filed under


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
            self.slots[row["slot"]] = Slot(True, row.get("request"), row.get("role"))
        elif row["op"] == "free":
            self._accuse("D10", not slot.live, row)
            slot.live, slot.request, slot.node, slot.home = False, None, False, None
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
            self._accuse("D3", source.request not in (None, row["request"] or source.request), row)

    def _write(self, row: Row, slot: Slot) -> None:
        commit = row["op"] == "scatter" and row["role"] == "live"
        moves = commit or row["op"] == "advance"
        self._accuse("D10", not slot.live, row)
        if slot.live and not slot.node:
            self._accuse("D7", moves and not slot.written, row)
            self._accuse("D7", row["op"] in ("clear", "restore") and slot.written, row)
            mine = slot.request is not None and slot.request == row["request"]
            self._accuse("D6", moves and mine and slot.role in ("keep", "spare"), row)
        if slot.live and "forward" in row:
            self._accuse("D6", row["request"] is None, row)
        if commit:
            taken = row.get("accept_len")  # a mutation may turn a track into half a commit
            if taken is not None:
                self._accuse("D4", taken < 1 or row["depth"] != row["depth_before"] + taken, row)
        if slot.live:
            stranger = None not in (slot.request, row["request"]) and slot.request != row["request"]
            self._accuse("D3", slot.node or stranger, row)
            self._move(row, slot, moves_live=moves)
        slot.written, slot.depth, slot.commit = True, row["depth"], commit

    def _move(self, row: Row, slot: Slot, *, moves_live: bool) -> None:
        """What depth an act may begin at, and lead to."""
        if row.get("grid") and row["depth"] % row["grid"]:
            self._accuse("D1", True, row)
        elif not slot.written:
            return
        elif moves_live and row.get("depth_before", slot.depth) != slot.depth:
            self._accuse("D4" if slot.commit else "D1", True, row)
        elif slot.depth is not None and row["op"] not in ("clear", "restore"):
            self._accuse("D1", row["depth"] < slot.depth, row)

    def _host(self, row: Row, slot: Slot) -> None:
        self._accuse("D10", not slot.live, row)
        if slot.live and row["op"] in ("donate", "insert", "match"):
            self._accuse("D2", not slot.written, row)
            off_grid = bool(row.get("grid")) and row["label"] % row["grid"] != 0
            self._accuse("D1", off_grid or (slot.written and row["label"] != slot.depth), row)
        if row["op"] == "insert" and slot.home is None:
            slot.home = row["node"]
        elif row["op"] in ("match", "evict"):
            self._accuse("D11", slot.home not in (None, row["node"]), row)
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
    return (
        machine.said
        | _commits(by_order)
        | _pairs(by_effect)
        | _posthumous(by_order)
        | _leaks(by_order)
    )


def _pairs(rows: list[Row]) -> set[Pair]:
    """What a verify or a restore takes is what its plan or its match named."""
    plans = {(r["forward"], r["request"]): r for r in rows if r["op"] == "verify.plan"}
    offers: dict[int, set[tuple[int, int]]] = defaultdict(set)
    said = set()
    for row in rows:
        if row["op"] == "match" and row["outcome"] == "hit":
            offers[row["request"]].add((row["node"], row["slot"]))
        elif row["op"] == "restore":
            offered = offers[row["request"]]
            if offered and (row["node"], row["src_slot"]) not in offered:
                said.add(("D5", row["seq"]))
        elif row["op"] == "scatter" and row.get("kind") == "verify":
            plan = plans.get((row["forward"], row["request"]))
            if plan is None or row.get("src_row", plan["row"]) != plan["row"]:
                said.add(("D5", row["seq"]))
            elif row["role"] in ("keep", "spare") and plan.get("slot") != row["slot"]:
                said.add(("D6", row["seq"]))
    return said


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
