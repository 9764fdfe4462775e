from __future__ import annotations

import pytest

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


def test_a_request_never_has_the_colour_of_a_contradiction_or_the_tree() -> None:
    colours = {palette.owner(number) for number in range(1_000)}
    assert colours == set(palette.OWNERS)
    assert not colours & {palette.CONTRADICTION, palette.NODE}
    assert palette.owner(None) == palette.NODE


@pytest.mark.parametrize("batch", [1, 2, 8, 16, 32, 64, 512])
def test_tenants_of_a_slot_in_turn_have_different_colours(batch: int) -> None:
    turns = [palette.owner(1 + batch * turn) for turn in range(4)]
    assert all(before != after for before, after in zip(turns, turns[1:], strict=False))


def test_every_role_has_its_thickness_even_if_it_is_alone() -> None:
    live = {"pool": 0, "slot": 1, "generation": 1, "role": "live", "request": 1,
            "request_id": "r", "node": None, "x": 0.0, "x2": 1.0, "held": False}  # fmt: skip
    spec = charts.life_lines(
        ["1"], "time", 0.0, 1.0, ownership=[live], writes=[], marks=[], contradictions=[]
    ).to_dict()
    scale = spec["layer"][0]["encoding"]["size"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == palette.THICKNESS


def test_many_owners_have_no_legend() -> None:
    rows = [{"request_id": f"r{i}", "request": i} for i in range(50)]
    assert charts._owner_scale(rows)[1] is None
    assert charts._owner_scale(rows[:3])[1] is not None
