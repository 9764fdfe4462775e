"""The page of the tree, and what it asks."""

from __future__ import annotations

from pathlib import Path

from slotscope.dashboard import palette, queries, tree_chart
from slotscope.instrument.trace import Trace
from tests.dashboard.conftest import HOSTILE, whole
from tests.dashboard.test_pages import Opener, charts_of, opened, said, table

__all__ = ["opened"]


def test_a_node_whose_state_has_another_depth_comes_first(trace: Trace) -> None:
    rows = queries.nodes(trace, whole(trace), held=False, limit=2).to_pylist()
    assert (rows[0]["node"], rows[0]["label"], rows[0]["depths"]) == (3, 192, [256])
    assert (rows[0]["slot"], rows[0]["request_id"], rows[0]["reads"]) == (6, "chat-0003", 1)
    assert [row["wrong"] for row in rows] == [1, 0]
    assert (rows[0]["total"], rows[0]["wrong_total"]) == (4, 1)


def test_without_the_bug_no_node_is_wrong(spared: Trace) -> None:
    rows = queries.nodes(spared, whole(spared), held=True, limit=60).to_pylist()
    assert [row["wrong"] for row in rows] == [0] * 5
    deeper = next(row for row in rows if row["label"] == 256)
    shallower = next(row for row in rows if row["label"] == 192 and row["slot"] == 6)
    assert deeper["parent"] == shallower["node"]  # one request gave both


def node(
    number: int, label: int, parent: int | None = None, **columns: object
) -> dict[str, object]:
    return {"node": number, "label": label, "parent": parent, "wrong": 0, "off_grid": False,
            "grid": 64, "depths": [label], "slot": 1, "generation": 1, "request": 1,
            "request_id": "r", "held": True, "reads": 0} | columns  # fmt: skip


def test_children_stand_below_their_parent() -> None:
    rows = [node(9, 64), node(1, 128), node(2, 256, parent=9), node(3, 192, parent=77)]
    lanes = tree_chart.laid_out(rows)
    assert [(row["node"], row["x"], row["above"]) for row in lanes] == [
        (9, 0, None),
        (2, 64, 0),
        (1, 0, None),
        (3, 0, None),
    ]


def test_only_what_is_wrong_is_red() -> None:
    right = tree_chart.tree([node(1, 128)]).to_dict()
    off = tree_chart.laid_out([node(1, 100, off_grid=True)])
    apart = tree_chart._states(tree_chart.laid_out([node(1, 128, depths=[128, 192], wrong=1)]))
    assert [row["red"] for row in tree_chart.laid_out([node(1, 128)])] == [False]
    assert [row["red"] for row in off] == [True]
    assert [(row["depth"], row["apart"]) for row in apart] == [(128, False), (192, True)]
    assert palette.CONTRADICTION in str(right)  # as a condition


def test_the_page_shows_the_mismatch_and_its_history(aliased: Path, opened: Opener) -> None:
    test = opened(aliased, "tree", node="3")
    assert not test.exception
    page = said(test)
    assert "Node 3 is filed under 192 tokens, but the state in its slot 6 has 256." in page
    assert len(charts_of(test)) == 1
    assert {"scatter", "donate", "insert", "match", "restore"} <= set(table(test)["op"])
    assert HOSTILE not in "".join(element.value for element in (*test.markdown, *test.caption))


def test_a_clean_tree_has_nothing_red(clean: Path, opened: Opener) -> None:
    test = opened(clean, "tree", nodes="held", node="99999")
    assert not test.exception
    assert "is filed under" not in said(test)
