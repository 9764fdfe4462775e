from __future__ import annotations

from pathlib import Path

import pytest

from slotscope.dashboard import ask, queries
from slotscope.dashboard.ask import QueryError, literal
from slotscope.dashboard.queries import Axis, Filter
from slotscope.instrument.trace import Trace
from tests.dashboard.conftest import HOSTILE, whole

ALL = Filter()
SQL = Path(queries.__file__).with_name("sql")


def slots_of(source: Trace, axis: Axis, chosen: Filter = ALL) -> tuple[int, ...]:
    return tuple(queries.lanes(source, axis, chosen, limit=24)["slot"].to_pylist())


def test_a_literal_quotes_what_a_request_may_be_called() -> None:
    assert literal("it's; DROP") == "'it''s; DROP'"
    assert literal((1, 2)) == "[1, 2]"
    assert literal(("a", "b'")) == "['a', 'b''']"
    assert literal(None) == "NULL"
    assert literal(True) == "true"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}])
def test_a_value_that_has_no_literal_is_refused(value: object) -> None:
    with pytest.raises(QueryError):
        literal(value)


def test_a_question_without_its_values_is_refused() -> None:
    with pytest.raises(QueryError, match=r"\$process"):
        ask.render("history", {})


def test_every_sql_file_says_what_it_answers_and_has_a_function() -> None:
    asked = "".join(Path(str(m.__file__)).read_text(encoding="utf-8") for m in (ask, queries))
    for file in SQL.glob("*.sql"):
        assert file.read_text(encoding="utf-8").startswith("-- "), f"{file.name} has no header"
        assert f'"{file.stem}"' in asked, f"nobody asks {file.name}"


def test_a_kept_slot_passes_from_its_request_to_the_tree(trace: Trace) -> None:
    axis = whole(trace)
    rows = queries.ownership(trace, axis, ALL, (6,)).to_pylist()
    assert [(r["role"], r["request_id"], r["node"]) for r in rows] == [
        ("keep", "chat-0003", None),
        ("node", None, 3),
    ]
    assert rows[0]["x2"] == rows[1]["x"]
    assert rows[1]["x2"] == axis.high
    assert rows[1]["held"]


def test_a_swap_makes_the_spare_slot_keep(spared: Trace) -> None:
    rows = queries.ownership(spared, whole(spared), ALL, (7,)).to_pylist()
    assert [r["role"] for r in rows] == ["spare", "keep", "node"]


def test_a_late_said_write_is_drawn_from_its_launch_to_its_result(trace: Trace) -> None:
    axis = whole(trace)
    history = queries.history(trace, axis, ALL, pool=0, slot=6, limit=100).to_pylist()
    order = [(r["op"], r["kind"]) for r in history]
    assert order.index(("scatter", "verify")) < order.index(("donate", None))
    (verify,) = [
        w for w in queries.writes(trace, axis, ALL, (6,)).to_pylist() if w["kind"] == "verify"
    ]
    donate = next(r["x"] for r in history if r["op"] == "donate")
    assert verify["depth"] == 256
    assert verify["x"] < donate < verify["x2"]
    assert not verify["open"]


def test_marks_name_what_was_claimed(trace: Trace) -> None:
    rows = queries.marks(trace, whole(trace), ALL, (6, 9)).to_pylist()
    told = {(r["op"], r["slot"]): r for r in rows}
    assert told["donate", 6]["label"] == 192
    assert told["match", 6]["request_id"] == HOSTILE
    assert told["restore", 9]["src_slot"] == 6


def test_filters_narrow_the_lanes(trace: Trace) -> None:
    axis = whole(trace)
    assert slots_of(trace, axis) == tuple(range(1, 10))
    assert slots_of(trace, axis, Filter(slots=(6, 99))) == (6,)
    assert slots_of(trace, axis, Filter(request="chat-0002")) == (3, 4)
    assert slots_of(trace, axis, Filter(request=HOSTILE)) == (6, 9)
    lanes = queries.lanes(trace, axis, ALL, limit=2).to_pylist()
    assert [lane["total"] for lane in lanes] == [9, 9]


def test_filters_narrow_the_layers(trace: Trace) -> None:
    axis, slots = whole(trace), tuple(range(1, 10))
    spoken = {
        r["op"] for r in queries.marks(trace, axis, Filter(ops=("donate",)), slots).to_pylist()
    }
    assert spoken == {"donate"}
    roles = {
        r["role"] for r in queries.ownership(trace, axis, Filter(role="keep"), slots).to_pylist()
    }
    assert roles == {"keep"}


def test_a_window_cuts_what_it_shows(trace: Trace) -> None:
    axis = whole(trace)
    middle = Axis(axis.process, axis.unit, axis.zero_ns, axis.high / 3, axis.high / 2)
    for rows in (
        queries.ownership(trace, middle, ALL, slots_of(trace, axis)),
        queries.writes(trace, middle, ALL, slots_of(trace, axis)),
    ):
        assert rows.num_rows
        assert min(rows["x"].to_pylist()) >= middle.low
        assert max(rows["x2"].to_pylist()) <= middle.high


@pytest.mark.parametrize("unit", ["time", "order"])
def test_a_layer_with_too_many_marks_is_thinned(
    trace: Trace, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    axis = whole(trace, unit)
    slots = slots_of(trace, axis)
    fine = queries.writes(trace, axis, ALL, slots)
    monkeypatch.setitem(queries.MARKS_MAX, "writes", 18)
    thin = queries.writes(trace, axis, ALL, slots)
    assert thin.num_rows <= 18 < fine.num_rows
    assert sum(thin["folded"].to_pylist()) == sum(fine["folded"].to_pylist())


def test_density_counts_every_act_on_a_slot_once(trace: Trace) -> None:
    bins = queries.density(trace, whole(trace), bins=20).to_pylist()
    (acts,) = trace.sql("SELECT count(*) AS n FROM events WHERE slot IS NOT NULL").to_pylist()
    assert sum(row["acts"] for row in bins) == acts["n"]
    assert all(0 <= row["bin"] < 20 for row in bins)


def test_notes_and_freshness_tell_of_the_process(trace: Trace) -> None:
    process = queries.processes(trace).to_pylist()[0]
    assert (
        queries.notes(trace, process["process"])["engine.without_patch"] == "prefill-donation-guard"
    )
    fresh = queries.freshness(trace)
    assert fresh["state"] == "stopped"
    assert fresh["until"] is not None


def test_the_latest_requests_come_first(trace: Trace) -> None:
    names = queries.requests(trace, whole(trace), limit=3)["request_id"].to_pylist()
    assert names == [HOSTILE, "chat-0004", "chat-0003"]


def test_the_surroundings_of_a_witness_carry_the_depth_forward(trace: Trace) -> None:
    axis = whole(trace)
    asked = (
        "SELECT writer::BIGINT << 40 | seq AS event FROM events WHERE op = 'donate' AND slot = 6"
    )
    (donate,) = trace.sql(asked)["event"].to_pylist()
    rows = queries.around(trace, axis, pool=0, slot=6, events=(donate,)).to_pylist()
    assert [r["turn"] for r in rows] == list(range(1, len(rows) + 1))
    (row,) = [r for r in rows if r["witness"]]
    assert (row["op"], row["label"], row["state_depth"]) == ("donate", 192, 256)
