"""Ids are computed twice, in NumPy and in SQL. Each checks the other."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotscope.instrument.otel import spans
from slotscope.instrument.otel.ids import Domain, SpanIds, UidError, hex64, mix64

UID = 0xFEDCBA9876543210
numbers = st.integers(0, 2**31 - 1)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    spans.install_ids(con, UID)
    return con


def ask(con: duckdb.DuckDBPyConnection, expression: str, *values: int) -> Any:
    names = ", ".join(f"?::BIGINT AS {chr(97 + i)}" for i in range(len(values)))
    row = con.execute(f"SELECT {expression} FROM (SELECT {names})", list(values)).fetchone()
    assert row is not None
    return row[0]


def test_mix64_is_splitmix64() -> None:
    # The first outputs of the published generator, seeded with 0: it mixes multiples of the
    # golden ratio's fraction.
    golden = np.uint64(0x9E3779B97F4A7C15)
    states = golden * np.arange(1, 4, dtype=np.uint64)
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mix64(states).tolist() == expected


@settings(deadline=None, max_examples=60)
@given(value=st.integers(0, 2**64 - 1))
def test_mix_is_equal_in_sql(con: duckdb.DuckDBPyConnection, value: int) -> None:
    row = con.execute("SELECT span_mix(?::UBIGINT)", [value]).fetchone()
    assert row == (int(mix64(np.uint64(value))[0]),)


@settings(deadline=None, max_examples=60)
@given(writer=st.integers(0, 2**20), seq=st.integers(0, 2**40 - 1))
def test_event_ids_are_equal_in_sql(con: duckdb.DuckDBPyConnection, writer: int, seq: int) -> None:
    ids = SpanIds(UID)
    assert ask(con, "event_span_id(a, b)", writer, seq) == hex64(ids.event(writer, seq))[0]


@settings(deadline=None, max_examples=60)
@given(process=numbers, other=numbers)
def test_request_and_forward_ids_are_equal_in_sql(
    con: duckdb.DuckDBPyConnection, process: int, other: int
) -> None:
    ids, pair = SpanIds(UID), (process, other)
    assert ask(con, "request_span_id(a, b)", *pair) == hex64(ids.request(*pair))[0]
    assert ask(con, "forward_span_id(a, b)", *pair) == hex64(ids.forward(*pair))[0]
    trace = "span_trace_id(a, {}, {}, NULL)"
    assert [ask(con, trace.format("b", "NULL"), *pair)] == ids.request_trace(*pair)
    assert [ask(con, trace.format("b", "7"), *pair)] == ids.request_trace(*pair)
    assert [ask(con, trace.format("NULL", "b"), *pair)] == ids.forward_trace(*pair)
    assert [ask(con, trace.format("NULL", "NULL"), process)] == ids.engine_trace(process)


@settings(deadline=None, max_examples=60)
@given(lease=st.tuples(numbers, numbers, numbers, numbers))
def test_lease_ids_are_equal_in_sql(
    con: duckdb.DuckDBPyConnection, lease: tuple[int, int, int, int]
) -> None:
    expected = hex64(SpanIds(UID).lease(*lease))
    assert [ask(con, "lease_span_id(a, b, c, d)", *lease)] == expected


def test_arrays_give_the_ids_of_their_elements() -> None:
    ids = SpanIds(UID)
    seqs = np.arange(1000)
    together = ids.event(3, seqs)
    assert together.tolist() == [int(ids.event(3, s)[0]) for s in seqs]
    assert len(set(together.tolist())) == len(seqs)


def test_what_is_named_differently_has_different_ids() -> None:
    ids = SpanIds(UID)
    assert len({ids.seed(d) for d in Domain}) == len(Domain)
    one = [ids.event(0, 7), ids.request(0, 7), ids.forward(0, 7), ids.lease(0, 0, 0, 7)]
    assert len({int(i[0]) for i in one}) == 4
    assert SpanIds(UID + 1).event(0, 7)[0] != ids.event(0, 7)[0]


def test_trace_ids_look_random_in_their_last_seven_bytes() -> None:
    # W3C asks it of ids that carry the random flag; samplers decide by these bytes.
    traces = SpanIds(UID).request_trace(0, np.arange(4096))
    tails = np.array([int(t[-14:], 16) for t in traces], dtype=np.uint64)
    assert len(set(tails.tolist())) == len(tails)
    ones = [int(((tails >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(56)]
    # 4096 fair coins lie within six standard deviations of 2048.
    assert all(abs(n - 2048) < 6 * 32 for n in ones)


@pytest.mark.parametrize("uid", [-1, 2**64])
def test_a_uid_of_another_size_is_refused(uid: int) -> None:
    with pytest.raises(UidError, match="64 bits"):
        SpanIds(uid)
