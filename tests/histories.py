"""Histories in one line: what an engine said, as short tokens, made into a trace's tables.

Each token is one record, and the token's place in the line, from 0, is its event id. Names:
`r7` request 7, `n2` node 2, `3` slot 3; device acts begin with their forward, `4:`, and may be
said at any time after its launch, as engines do.

    P1 D2 V3 X4     launch a prefill, decode, verify, dummy; `V3s1` runs on stream 1, `V3m0` is
                    micro-batch 0
    /3              the host has read forward 3
    r7+  r7-  r7-!  a request begins, ends, is aborted
    r7+live3        allocate slot 3 for r7 (live, keep, spare, node, scratch); `+node8` for nobody
    r7+spare?       an allocation that failed
    -3  r7-3        free, by whoever has it; by r7
    1:3@0           clear
    1:3@0>64        advance
    1:3<5@64n2      restore slot 3 from slot 5 of node 2; `@64=128` where the label is 128
    2:r7?6@64       plan a verify behind 64 tokens that may write slot 6; `2:r7?@64` tracks
                    nothing; `2:r7?6@64%64` names the grid
    2:3@64+2        commit: 2 tokens accepted; `2:3@64+2>70` says another depth
    1:5^64%64       track: the state at 64 goes to slot 5, on grid 64
    4:5=3@128%64    copy slot 3 to slot 5; without a forward `:5=3@128`
    r7~6<5=64       swap: 6 is the new keep, 5 was it, label 64
    5!64n2%64       donate slot 5 to node 2 as a state of 64 tokens; `5!64n2x` suppressed
    n2+5@64         insert; `n2+5@64x` where the node had a state
    n2?5@64  n2?    match: hit, miss; `r9.n2?5@64` for r9
    n2-5            evict
    offload(slot=5,depth=64,...)   any other operation, columns as they are named
    ...             records were lost here
    |               the next process begins; its events are numbered from 0 under its own writer

A device act is by the request that had its slot at the launch; `1:r9.3@0>64` says another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from slotscope.instrument import schema
from slotscope.instrument.arrow import enum_ddl, events_ddl
from slotscope.instrument.event import Op, columns, op_name

Row = dict[str, Any]

KINDS = {"P": "prefill", "D": "decode", "V": "verify", "X": "dummy"}
_N = r"-?\d+"


class HistoryError(ValueError):
    """A token that is no act. The message shows it and its place."""


def _pattern(text: str) -> re.Pattern[str]:
    """`{a}` is an integer named a."""
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>-?\\d+)", text))


_FORWARD, _BY = r"(?:{forward})?:", r"(?:r{by}\.)?"
_GRID = r"(?:%{grid})?"
# The order matters only for readers: no token matches two of them.
_FORMS: dict[str, re.Pattern[str]] = {
    name: _pattern(text)
    for name, text in {
        "forward.launch": r"(?P<kind>[PDVX]){forward}(?:s{stream})?(?:m{micro_batch})?",
        "forward.done": r"/{forward}",
        "request.begin": r"r{request}\+(?:@{label})?",
        "request.end": r"r{request}-(?P<aborted>!)?(?:@{depth})?",
        "allocate": r"(?:r{request})?\+(?P<role>[a-z]+)(?:{slot}|\?)",
        "free": r"(?:r{request})?-{slot}",
        "clear": _FORWARD + _BY + r"{slot}@0",
        "advance": _FORWARD + _BY + r"{slot}@{depth_before}>{depth}",
        "restore": _FORWARD + _BY + r"{slot}<{src_slot}@{depth}(?:={label})?n{node}",
        "verify.plan": r"{forward}:r{request}\?(?:{slot})?@{depth_before}" + _GRID,
        "commit": _FORWARD + _BY + r"{slot}@{depth_before}\+{accept_len}(?:>{depth})?",
        "track": _FORWARD + _BY + r"{slot}\^{depth}" + _GRID,
        "copy": _FORWARD + _BY + r"{slot}={src_slot}@{depth}" + _GRID,
        "swap": r"r{request}~{slot}(?:<{src_slot})?(?:={label})?",
        "donate": _BY + r"{slot}!{label}(?:n{node})?" + _GRID + r"(?P<suppressed>x)?",
        "insert": r"n{node}\+{slot}@{label}(?P<exists>x)?",
        "match": _BY + r"n{node}\?(?:{slot}@{label})?",
        "evict": r"n{node}-{slot}",
        "other": r"(?P<op>[a-z_.]+)\((?P<args>[^)]*)\)",
    }.items()
}


@dataclass
class _Process:
    """What a line has said so far of one process, as far as later tokens lean on it."""

    number: int
    said: int = 0
    launches: dict[int, Row] = field(default_factory=dict)
    owner: dict[int, int] = field(default_factory=dict)
    role: dict[int, str] = field(default_factory=dict)
    node: dict[int, int] = field(default_factory=dict)
    seats: dict[int, tuple[dict[int, int], dict[int, str]]] = field(default_factory=dict)

    def seat(self, row: Row) -> tuple[int | None, str | None]:
        """Whose the act's slot was, and as what, when its forward was launched."""
        owner, role = self.seats.get(row.get("forward", -1), (self.owner, self.role))
        slot = row["slot"]
        return owner.get(slot, self.owner.get(slot)), role.get(slot, self.role.get(slot))

    def place(self) -> Row:
        """The columns of the next record that don't depend on what it says."""
        said = self.said
        self.said += 1
        return {
            "process": self.number, "writer": self.number, "seq": said, "order": said + 1,
            "time_ns": 1000 * (said + 1), "source": "host",
        }  # fmt: skip


def _device(process: _Process, row: Row) -> None:
    """A device act carries its forward's launch; it is by the slot's tenant unless it says."""
    launched = process.launches.get(row.get("forward", -1))
    if launched is not None:
        row.update(launch=launched["order"], stream=launched["stream"], kind=launched["kind"])
    by = row.pop("by", None)
    row["request"] = process.seat(row)[0] if by is None else by


def _launch(process: _Process, row: Row) -> None:
    row["kind"] = KINDS[row["kind"]]
    row.setdefault("stream", 0)
    process.launches[row["forward"]] = row
    process.seats[row["forward"]] = (dict(process.owner), dict(process.role))


def _done(process: _Process, row: Row) -> None:
    launched = process.launches[row["forward"]]
    row.update(launch=launched["order"], kind=launched["kind"], stream=launched["stream"])


def _end(process: _Process, row: Row) -> None:
    row["outcome"] = "aborted" if row.pop("aborted", None) else "finished"


def _allocate(process: _Process, row: Row) -> None:
    if "slot" not in row:
        row["outcome"] = "failed"
        return
    process.role[row["slot"]] = row["role"]
    process.node.pop(row["slot"], None)
    process.owner.pop(row["slot"], None)
    if "request" in row:
        process.owner[row["slot"]] = row["request"]


def _free(process: _Process, row: Row) -> None:
    slot = row["slot"]
    row["role"] = process.role.get(slot)
    row["node"] = process.node.get(slot)
    if row["node"] is None:
        row.setdefault("request", process.owner.get(slot))


def _restore(process: _Process, row: Row) -> None:
    _device(process, row)
    row.setdefault("label", row["depth"])


def _plan(process: _Process, row: Row) -> None:
    row["row"] = row["request"]
    row["role"] = process.role.get(row.get("slot", -1))
    launched = process.launches[row["forward"]]
    row.update(kind="verify", launch=launched["order"], stream=launched["stream"])
    row["micro_batch"] = launched.get("micro_batch")


def _commit(process: _Process, row: Row) -> None:
    _device(process, row)
    row.setdefault("depth", row["depth_before"] + row["accept_len"])
    row.update(op="scatter", role="live", step=row["accept_len"] - 1, src_row=row["request"])


def _track(process: _Process, row: Row) -> None:
    _device(process, row)
    row.update(op="scatter", role=process.seat(row)[1])


def _copy(process: _Process, row: Row) -> None:
    _device(process, row)
    row["role"] = process.seat(row)[1]


def _swap(process: _Process, row: Row) -> None:
    process.role[row["slot"]] = "keep"
    if "src_slot" in row:
        process.role[row["src_slot"]] = "spare"


def _donate(process: _Process, row: Row) -> None:
    by = row.pop("by", None)
    row["request"] = process.owner.get(row["slot"]) if by is None else by
    row["role"] = process.role.get(row["slot"])
    if row.pop("suppressed", None):
        row["outcome"] = "suppressed"
    elif "node" in row:
        process.node[row["slot"]] = row["node"]


def _insert(process: _Process, row: Row) -> None:
    if row.pop("exists", None):
        row["outcome"] = "exists"
        process.node.pop(row["slot"], None)
    else:
        process.node[row["slot"]] = row["node"]


def _match(process: _Process, row: Row) -> None:
    row["outcome"] = "hit" if "slot" in row else "miss"
    if "by" in row:
        row["request"] = row.pop("by")


def _other(process: _Process, row: Row) -> None:
    for pair in filter(None, row.pop("args").split(",")):
        name, _, value = pair.partition("=")
        row[name] = int(value) if re.fullmatch(_N, value) else value
    if row.get("forward") in process.launches:
        row["launch"] = process.launches[row["forward"]]["order"]


_FILL: dict[str, Callable[[_Process, Row], None]] = {
    "forward.launch": _launch, "forward.done": _done, "request.end": _end, "allocate": _allocate,
    "free": _free, "clear": _device, "advance": _device, "restore": _restore,
    "verify.plan": _plan, "commit": _commit, "track": _track, "copy": _copy, "swap": _swap,
    "donate": _donate, "insert": _insert, "match": _match, "other": _other,
}  # fmt: skip


def _act(process: _Process, token: str) -> Row:
    """One token as the columns of one event."""
    for op, pattern in _FORMS.items():
        found = pattern.fullmatch(token)
        if found is None:
            continue
        said = {k: v for k, v in found.groupdict().items() if v is not None}
        row: Row = {"op": op, **process.place()}
        row |= {k: int(v) if re.fullmatch(_N, v) else v for k, v in said.items()}
        if op == "clear":
            row["depth"] = 0
        if op in _FILL:
            _FILL[op](process, row)
        if "slot" in row:
            row.setdefault("pool", 0)
        launch = row.get("launch")
        row["position"] = row["order"] if launch is None else launch
        return row
    raise HistoryError(
        f"{token!r} of process {process.number} is no act; the forms are {list(_FORMS)}."
    )


def read(history: str) -> tuple[list[Row], list[Row]]:
    """The events of a history, and the gaps in it."""
    rows: list[Row] = []
    gaps: list[Row] = []
    process = _Process(0)
    for token in history.split():
        if token == "|":
            process = _Process(process.number + 1)
        elif token == "...":
            place = process.place()
            at = place["order"]
            gaps.append({"process": process.number, "first_order": at, "last_order": at})
        else:
            rows.append(_act(process, token))
    _number_lives(rows)
    return rows, gaps


def _number_lives(rows: Iterable[Row]) -> None:
    """Generations as docs/events.md derives them: odd from an allocate on, even from a free on."""
    ordered = sorted(rows, key=lambda r: (r["process"], r["position"], r["order"]))
    lives: dict[tuple[int, int], int] = {}
    for row in ordered:
        key = (row["process"], row.get("slot", 0))
        if row["op"] == "allocate" and "slot" in row:
            lives[key] = lives.get(key, 0) + 1 + lives.get(key, 0) % 2
        elif row["op"] == "free":
            lives[key] = lives.get(key, 0) + lives.get(key, 0) % 2
        if "slot" in row:
            row["generation"] = lives.get(key, 0)
        if "src_slot" in row:
            row["src_generation"] = lives.get((row["process"], row["src_slot"]), 0)


TABLES = ("requests", "hooks", "notes", "gaps")


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables of a trace, those that detectors read."""
    tables = schema.statements("tables")
    con.execute(";\n".join([*enum_ddl(), events_ddl()[0], *(tables[name] for name in TABLES)]))


def connect(history: str = "", *, dead: Sequence[str] = ()) -> duckdb.DuckDBPyConnection:
    """A connection with the history as a trace's tables; hooks of the ops in `dead` are dead."""
    rows, gaps = read(history)
    con = duckdb.connect(config={"threads": 1})
    create(con)
    if rows:
        names = [name for name, _, _ in columns()]
        said = pa.table({name: [row.get(name) for row in rows] for name in names})
        con.register("said", said)
        con.execute("INSERT INTO events SELECT * FROM said")
        con.unregister("said")
    con.execute(
        "INSERT INTO hooks SELECT DISTINCT process, 'engine', op, op NOT IN (SELECT unnest($2)), 0"
        " FROM (SELECT process FROM events UNION SELECT 0), (SELECT unnest($1) AS op)",
        [[op_name(op) for op in Op], list(dead)],
    )
    con.execute(
        "INSERT INTO requests BY NAME SELECT DISTINCT process, request, 0 AS attempt,"
        " 'q' || request AS request_id, 0 AS \"order\", 0 AS time_ns"
        " FROM events WHERE request IS NOT NULL"
    )
    for gap in gaps:
        lose(con, **gap)
    return con


def lose(con: duckdb.DuckDBPyConnection, **gap: Any) -> None:
    """Say that records were lost. Columns of `gaps`; the count is 1 where none is given."""
    row = {"reason": "full", "count": 1, "open": False} | gap
    names = ", ".join(f'"{name}"' for name in row)
    con.execute(f"INSERT INTO gaps ({names}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
