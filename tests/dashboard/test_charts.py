from __future__ import annotations

from slotscope.dashboard import charts, palette, queries
from slotscope.dashboard.queries import Filter
from slotscope.instrument.trace import Trace
from tests.dashboard.conftest import whole


def test_life_lines_are_a_valid_chart_of_all_layers(trace: Trace) -> None:
    axis = whole(trace)
    slots = tuple(range(1, 10))
    spec = charts.life_lines(
        [str(slot) for slot in slots], "order", axis.low, axis.high,
        ownership=queries.ownership(trace, axis, Filter(), slots).to_pylist(),
        writes=queries.writes(trace, axis, Filter(), slots).to_pylist(),
        marks=queries.marks(trace, axis, Filter(), slots).to_pylist(),
        contradictions=[{"pool": 0, "slot": 6, "x": 60.0, "detector": "D1", "because": "however"}],
    ).to_dict()  # fmt: skip
    assert len(spec["layer"]) == 5
    assert palette.CONTRADICTION in str(spec["layer"][4])


def test_a_request_has_one_colour_and_never_that_of_a_contradiction() -> None:
    colours = {palette.owner(number) for number in range(100)}
    assert palette.owner(3) == palette.owner(3 + len(palette.OWNERS))
    assert palette.CONTRADICTION not in colours
    assert palette.owner(None) == palette.NODE


def test_many_owners_have_no_legend() -> None:
    rows = [{"request_id": f"r{i}", "request": i} for i in range(50)]
    assert charts._owner_scale(rows)[1] is None
    assert charts._owner_scale(rows[:3])[1] is not None
