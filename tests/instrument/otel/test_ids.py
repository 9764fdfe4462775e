"""Ids are computed twice, in NumPy and in SQL. Each checks the other."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from slotscope.instrument.otel import spans
from slotscope.instrument.otel.ids import Domain, SpanIds, UidError, hex64, mix64

UID = 0xFEDCBA9876543210
ROWS = 5000

Numbers = NDArray[np.int64]


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    spans.install_ids(con, UID)
    return con


def numbers(bits: int, seed: int) -> Numbers:
    """Random numbers below 2^bits of all magnitudes, with both ends of the range."""
    random = np.random.default_rng(seed)
    shifts = random.integers(0, bits, ROWS)
    values: Numbers = random.integers(0, 2**bits, ROWS) >> shifts
    values[:4] = 0, 1, 2**bits - 1, 2 ** (bits - 1)
    return values


def ask(con: duckdb.DuckDBPyConnection, expression: str, *columns: Numbers) -> list[str]:
    """The expression for each row of columns a, b, c, d."""
    con.register("given", pa.table(dict(zip("abcd", columns, strict=False))))
    return [row for (row,) in con.execute(f"SELECT {expression} FROM given").fetchall()]


def test_mix64_is_splitmix64() -> None:
    # The first outputs of the published generator, seeded with 0: it mixes multiples of the
    # golden ratio's fraction.
    golden = np.uint64(0x9E3779B97F4A7C15)
    states = golden * np.arange(1, 4, dtype=np.uint64)
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert mix64(states).tolist() == expected


def test_mix_is_equal_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    values = np.random.default_rng(0).integers(0, 2**64, ROWS, dtype=np.uint64)
    values[:3] = 0, 1, 2**64 - 1
    con.register("whole", pa.table({"a": values}))
    told = con.execute("SELECT span_mix(a) FROM whole").fetchall()
    assert [row for (row,) in told] == mix64(values).tolist()


def test_event_ids_are_equal_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    columns = numbers(20, 1), numbers(40, 2)
    assert ask(con, "event_span_id(a, b)", *columns) == hex64(SpanIds(UID).event(*columns))


def test_request_and_forward_ids_are_equal_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    ids, columns = SpanIds(UID), (numbers(31, 3), numbers(31, 4))
    assert ask(con, "request_span_id(a, b)", *columns) == hex64(ids.request(*columns))
    assert ask(con, "forward_span_id(a, b)", *columns) == hex64(ids.forward(*columns))


def test_lease_ids_are_equal_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    columns = numbers(31, 5), numbers(31, 6), numbers(31, 7), numbers(31, 8)
    assert ask(con, "lease_span_id(a, b, c, d)", *columns) == hex64(SpanIds(UID).lease(*columns))


def test_trace_ids_are_equal_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    ids, columns = SpanIds(UID), (numbers(31, 9), numbers(31, 10))
    told = [
        ask(con, f"span_trace_id(a, {request}, {forward}, NULL)", *columns)
        for request, forward in (("b", "NULL"), ("b", "7"), ("NULL", "b"), ("NULL", "NULL"))
    ]
    of_request = ids.request_trace(*columns)
    assert told == [
        of_request,
        of_request,
        ids.forward_trace(*columns),
        ids.engine_trace(columns[0]),
    ]


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
