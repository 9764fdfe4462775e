"""Reading a trace: what SQL sees, what it can't reach, and what is refused."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import duckdb
import histories
import pytest

import slotscope
from slotscope.instrument import probe, schema
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import ENUMS, Kind, Op, Outcome, Role, columns, op_name


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One request: prefilled, tracked, decoded under overlap, its checkpoint given to the tree."""
    directory = tmp_path_factory.mktemp("history") / "trace"
    probe.start(directory, collector=False)
    number = probe.request("first", client_id="mine")
    probe.emit(Op.REQUEST_BEGIN, request=number, label=192, row=3)
    probe.emit(Op.ALLOCATE, slots=[5, 6], request=number, role=Role.LIVE)
    probe.emit(Op.ALLOCATE, slots=None, outcome=Outcome.FAILED, role=Role.SPARE)
    prefill = probe.emit(Op.FORWARD_LAUNCH, forward=0, kind=Kind.PREFILL)
    probe.emit(Op.CLEAR, slots=5, depth=0, forward=0, launch=prefill, request=number)
    probe.emit(Op.ADVANCE, slots=5, depth_before=0, depth=192, forward=0, launch=prefill)
    probe.emit(Op.SCATTER, slots=6, src_slot=5, depth=192, role=Role.KEEP, launch=prefill)
    probe.emit(Op.FORWARD_DONE, forward=0, launch=prefill)
    decode = probe.emit(Op.FORWARD_LAUNCH, forward=1, kind=Kind.DECODE)
    probe.emit(Op.DONATE, slots=6, label=192, node=77, role=Role.KEEP, request=number)
    probe.emit(Op.REQUEST_END, request=number, outcome=Outcome.FINISHED)
    probe.emit(Op.FREE, slots=5, role=Role.LIVE)
    probe.emit(Op.ADVANCE, slots=5, depth_before=192, depth=193, forward=1, launch=decode)
    probe.stop()
    return directory


@pytest.fixture(scope="module")
def stored(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, collected."""
    directory = tmp_path_factory.mktemp("stored") / "trace"
    shutil.copytree(history, directory)
    Collector(directory, linger_s=0).run()
    return directory


@pytest.fixture(scope="module", params=["segments", "duckdb"])
def trace(request: pytest.FixtureRequest, history: Path, stored: Path) -> Any:
    with slotscope.open(stored if request.param == "duckdb" else history) as opened:
        assert opened.stored == (request.param == "duckdb")
        yield opened


def test_a_late_said_write_has_the_generation_that_it_was_launched_under(trace: Any) -> None:
    life = trace.history(5)
    acts = list(zip(life["op"].to_pylist(), life["generation"].to_pylist(), strict=True))
    assert acts == [
        ("allocate", 1), ("clear", 1), ("advance", 1), ("scatter", 1), ("advance", 1), ("free", 2),
    ]  # fmt: skip
    assert life["request_id"].to_pylist()[0] == "first"
    assert life["src_generation"].to_pylist()[3] == 1


def test_leases_tell_a_slots_lives(trace: Any) -> None:
    live, kept = trace.sql("FROM leases ORDER BY slot").to_pylist()
    assert (live["slot"], live["generation"], live["depth"], live["donated"]) == (5, 1, 193, False)
    assert live["requests"] == [1]
    assert live["freed_order"] > live["allocated_order"]
    assert (kept["slot"], kept["freed_order"], kept["donated"]) == (6, None, True)
    assert (kept["node"], kept["label"], kept["depth"]) == (77, 192, 192)
    assert kept["roles"] == ["live", "keep"]


def test_slots_and_forwards_sum_up(trace: Any) -> None:
    five, six = trace.slots().to_pylist()
    assert (five["slot"], five["leases"], five["state"], five["last_op"]) == (5, 1, "free", "free")
    assert (six["slot"], six["state"], six["role"], six["node"]) == (6, "live", "node", 77)
    assert (five["request"], six["request"]) == (None, None)
    prefill, decode = trace.sql("FROM forwards ORDER BY forward").to_pylist()
    assert (prefill["kind"], prefill["rows"]) == ("prefill", 1)
    assert prefill["done_ns"] >= prefill["launched_ns"]
    assert (decode["kind"], decode["done_ns"]) == ("decode", None)


def test_a_trace_that_grows_is_caught_up_with(traced: Path) -> None:
    probe.emit(Op.ALLOCATE, slots=[1, 2], role=Role.LIVE)
    queries = ("FROM events ORDER BY seq", "FROM slots ORDER BY slot", "FROM gaps", "FROM hooks")
    with slotscope.open(traced) as trace:
        assert trace.sql("FROM events").num_rows == 2
        for i in range(3):
            probe.hook(f"hook {i}", [Op.FREE], live=True)
            probe.emit(Op.FREE, slots=[1, 2])
            probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])  # refused
            probe.emit(Op.ALLOCATE, slots=[1, 2], role=Role.LIVE)
            assert trace.grown()
            assert trace.catch_up()
            assert not trace.grown()
            told = [trace.sql(query).to_pylist() for query in queries]
            with slotscope.open(traced) as again:
                assert told == [again.sql(query).to_pylist() for query in queries]
        assert trace.sql("FROM events").num_rows == 14
        probe.stop()
        assert trace.catch_up()
        assert trace.sql("FROM processes")["state"].to_pylist() == ["stopped"]


def test_a_stored_trace_is_not_caught_up_with(stored: Path) -> None:
    with slotscope.open(stored) as trace:
        assert not trace.catch_up()


def test_the_owner_is_who_got_the_slot_not_who_spoke_of_it_last() -> None:
    with histories.connect(
        "r7+ r7+live3 r7+keep5 r7+spare6 r7+spare8 P1 1:3@0 1:3@0>255 1:5^192 1:6^192"
        " r7~6<5=192 5!192n2 n2+5@192 donate(slot=8,request=7,role=spare,node=2,outcome=exists)"
        " r7- -3 r9+ r9+live3 P2 2:3<5@192n2 n2?5@192 1:r7.3@255>256"
        " evict(slot=5,node=2,role=node,request=9) r9+live9 9!0n4 n4+9@0 r9~9<6"
    ) as con:
        for statement in schema.statements("views").values():
            con.execute(statement)
        told = con.execute("SELECT slot, role, request, node FROM slots ORDER BY slot").fetchall()
    assert told == [
        (3, "live", 9, None),  # The dead request's write was said last.
        (5, None, None, None),  # Evicted, and not yet freed.
        (6, "spare", 9, None),
        (8, "spare", 7, None),  # The node had that state already.
        (9, "node", None, 4),  # A late swap takes nothing from the tree.
    ]


def test_a_donation_of_what_the_node_has_gives_nothing() -> None:
    with histories.connect(
        "r7+ r7+keep5 P1 1:5^192 /1"
        " donate(slot=5,request=7,role=keep,label=192,node=2,outcome=exists) n2+5@192x -5"
    ) as con:
        for statement in schema.statements("views").values():
            con.execute(statement)
        (lease,) = con.execute("SELECT donated, donated_order, node, label FROM leases").fetchall()
    assert lease == (False, None, None, None)


def test_the_owner_of_a_slot_at_a_position(trace: Any) -> None:
    free = trace.sql("SELECT \"order\" FROM events WHERE op = 'free'")["order"][0].as_py()
    assert trace.sql(f"FROM owner_at(5, {free - 1})")["generation"].to_pylist() == [1]
    assert trace.sql(f"FROM owner_at(5, {free})").num_rows == 0
    assert trace.sql("FROM owner_at(6, 10000)")["node"].to_pylist() == [77]


def test_enums_are_spelled_as_in_the_docs(trace: Any) -> None:
    for column, codes in ENUMS.items():
        names = trace.sql(f"SELECT unnest(enum_range(NULL::{column}_name))::VARCHAR AS name")
        spelled = [op_name(c) if isinstance(c, Op) else c.name.lower() for c in codes]
        assert names["name"].to_pylist() == spelled


def test_spans_are_there_for_each_event(trace: Any) -> None:
    count = trace.sql("SELECT count(*) AS n FROM spans WHERE name LIKE 'slot.%'")["n"][0].as_py()
    slots = trace.sql("SELECT count(*) AS n FROM events WHERE slot IS NOT NULL")["n"][0].as_py()
    assert count >= slots


def test_the_stored_columns_are_those_of_the_event(stored: Path) -> None:
    with duckdb.connect(str(stored / "live.duckdb"), read_only=True) as con:
        told = con.execute(
            "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'events' "
            "ORDER BY column_index"
        ).fetchall()
    assert told == [(name, meaning) for name, _, meaning in columns()]


ESCAPES = [
    "CREATE TABLE stored.evil AS SELECT 1",
    "DELETE FROM stored.events",
    "DROP TABLE stored.events",
    "COPY (SELECT 1) TO '{outside}'",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "FROM '/etc/passwd'",
    "ATTACH '{outside}' AS evil",
    "ATTACH ':memory:' AS evil; SELECT 1",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '1TB'",
    "RESET max_execution_time",
    "INSTALL httpfs",
    "LOAD httpfs",
    "EXPORT DATABASE '{outside}'",
    "SELECT 1; SELECT 2",
    "COMMIT; DROP TABLE gaps",
    "",
]


@pytest.mark.parametrize("query", ESCAPES, ids=[q[:30] or "empty" for q in ESCAPES])
def test_sql_reaches_nothing_outside(trace: Any, stored: Path, tmp_path: Path, query: str) -> None:
    before = (stored / "live.duckdb").read_bytes()
    outside = tmp_path / "outside"
    count = trace.sql("FROM events").num_rows
    with pytest.raises(slotscope.QueryError):
        trace.sql(query.format(outside=outside))
    assert trace.sql("FROM events").num_rows == count
    assert not outside.exists()
    assert (stored / "live.duckdb").read_bytes() == before


@pytest.mark.parametrize("query", ["DROP VIEW leases", "DROP TABLE gaps", "COMMIT", "ROLLBACK",
                                   "CREATE TABLE mine AS SELECT 1", "DETACH stored"])  # fmt: skip
def test_what_a_statement_changes_is_undone(trace: Any, query: str) -> None:
    with contextlib.suppress(slotscope.QueryError):
        trace.sql(query)
    assert trace.sql("FROM leases").num_rows == 2
    assert trace.sql("FROM gaps").num_rows == 0
    with pytest.raises(slotscope.QueryError, match="mine"):
        trace.sql("FROM mine")


def test_a_query_that_takes_too_long_is_stopped(history: Path) -> None:
    endless = "SELECT sum(hash(a.range * b.range)) FROM range(1000000) a, range(1000000) b"
    with slotscope.open(history, time_limit_s=0.3) as opened:
        with pytest.raises(slotscope.QueryError, match="(?i)time|interrupt"):
            opened.sql(endless)
        assert opened.sql("FROM leases").num_rows == 2


def test_a_query_that_takes_too_much_memory_is_stopped(history: Path) -> None:
    huge = "SELECT list(a.range + b.range) FROM range(100000) a, range(1000) b"
    limited = slotscope.open(history, memory_limit="100MB")
    with limited as opened, pytest.raises(slotscope.QueryError, match="(?i)memory"):
        opened.sql(huge)


def test_the_connection_takes_temporary_tables_of_its_own(trace: Any) -> None:
    con = trace.connection
    con.execute("CREATE TEMP TABLE fold AS FROM events")
    assert con.execute("SELECT count(*) FROM fold").fetchone() is not None
    with pytest.raises(slotscope.QueryError):
        trace.sql("FROM fold")


def test_a_growing_trace_says_so(traced: Path) -> None:
    probe.emit(Op.FREE, slots=1)
    with slotscope.open(traced) as opened:
        assert opened.live
        assert not opened.grown()
        assert set(opened.watermark.values()) == {1}
        probe.emit(Op.FREE, slots=1)
        assert opened.grown()
        assert opened.sql("FROM events").num_rows == 1
        probe.stop()
        assert not opened.live or opened.grown()
    with slotscope.open(traced) as opened:
        assert not opened.live
        assert not opened.grown()


def test_a_trace_with_a_quote_in_its_path_opens(tmp_path: Path) -> None:
    directory = tmp_path / "it's; a trace"
    probe.start(directory, collector=False)
    probe.emit(Op.FREE, slots=1)
    probe.stop()
    Collector(directory, linger_s=0).run()
    with slotscope.open(directory) as opened:
        assert opened.stored
        assert opened.sql("FROM events").num_rows == 1


def test_what_is_no_trace_is_refused_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(slotscope.TraceError, match="is no directory.*--trace"):
        slotscope.open(tmp_path / "absent")
    with pytest.raises(slotscope.TraceError, match="holds no trace.*--trace"):
        slotscope.open(tmp_path)
