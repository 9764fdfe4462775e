"""What the fold says each act met, and that it does so at any size."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from histories import connect

from slotscope.instrument import fold
from slotscope.instrument.fold import FoldError


def rows(history: str, columns: str) -> list[tuple[Any, ...]]:
    with connect(history) as con:
        fold.prepare(con)
        return con.execute(f"SELECT {columns} FROM fold ORDER BY line").fetchall()


def test_each_act_meets_what_the_acts_before_it_left() -> None:
    told = rows(
        "r7+ r7+keep5 P1 1:5^64 /1 5!64n2 n2+5@64 n2-5 -5",
        "op, live_was, tree_was, owner_was, written_was, depth_was",
    )
    assert told == [
        ("allocate", False, False, None, False, None),
        ("scatter", True, False, 7, False, None),
        ("donate", True, False, 7, True, 64),
        ("insert", True, True, None, True, 64),
        ("evict", True, True, None, True, 64),
        ("free", True, False, None, True, 64),
    ]


def test_a_restore_touches_two_slots() -> None:
    told = rows(
        "r7+ r7+keep5 P1 1:5^64 /1 5!64n2 r9+ r9+live3 P2 2:3<5@64n2",
        "op, slot, reads, depth_was, writes",
    )
    assert [row for row in told if row[0] == "restore"] == [
        ("restore", 3, False, None, True),
        ("restore", 5, True, 64, False),
    ]


def test_a_new_lease_begins_unwritten() -> None:
    told = rows("r7+ r7+keep5 P1 1:5^64 /1 -5 r9+ r9+keep5 5!64n2", "op, live_was, written_was")
    assert told == [
        ("allocate", False, False),
        ("scatter", True, False),
        ("free", True, True),
        ("allocate", False, True),
        ("donate", True, False),
    ]


def test_after_lost_records_a_slot_is_unknown_until_its_next_allocate() -> None:
    told = rows("r7+ r7+keep5 P1 1:5^64 /1 D2 /2 ... n2?5@64 -5 r9+ r9+keep5", "op, known_was")
    assert told[-3:] == [("match", False), ("free", False), ("allocate", True)]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_running_maximum_equals_the_last_value_of_a_window(threads: int) -> None:
    """Many row groups and threads: sorted rows must reach the running window in their order."""
    with connect() as con:
        con.execute(f"SET threads = {threads}")
        con.execute("""
            INSERT INTO events BY NAME
            SELECT 0 AS process, 0 AS writer, n AS seq, n AS "order", n AS position, n AS time_ns,
                   0 AS pool, 1 + hash(n) % 50 AS slot, 1 AS generation, n % 9 AS request,
                   n % 1000 AS depth,
                   CASE hash(n + 7) % 10 WHEN 0 THEN 'allocate' WHEN 1 THEN 'free'
                        WHEN 2 THEN 'insert' WHEN 3 THEN 'match' ELSE 'scatter' END AS op
            FROM range(400000) r(n)""")
        fold.prepare(con)
        differing = con.execute("""
            WITH windowed AS (
                SELECT line, depth_was, written_was, tree_was,
                       last_value(CASE op WHEN 'allocate' THEN -1 WHEN 'scatter' THEN depth END
                                  IGNORE NULLS) OVER before AS wrote,
                       last_value(CASE op WHEN 'insert' THEN 1 WHEN 'allocate' THEN 0
                                          WHEN 'free' THEN 0 END IGNORE NULLS) OVER before AS tree
                FROM fold
                WINDOW before AS (PARTITION BY slot ORDER BY position
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
            )
            SELECT count(*) FROM windowed
            WHERE COALESCE(wrote, -1) <> COALESCE(depth_was, -1)
               OR written_was <> (COALESCE(wrote, -1) >= 0)
               OR tree_was <> (COALESCE(tree, 0) = 1)""").fetchone()
    assert differing == (0,)


def test_a_connection_that_does_not_keep_the_order_of_rows_is_refused() -> None:
    with connect("r7+") as con:
        con.execute("SET preserve_insertion_order = false")
        with pytest.raises(FoldError, match="preserve_insertion_order"):
            fold.prepare(con)


def test_missing_columns_are_an_error_that_names_the_cure() -> None:
    with duckdb.connect() as con, pytest.raises(FoldError, match=r"slotscope\.instrument\.event"):
        fold.prepare(con)
