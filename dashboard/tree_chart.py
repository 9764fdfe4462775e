"""The picture of the radix tree: under which depth each node files its state, and which it has.

A node is a bar along the axis of depth, from where its parent ends to its label (diamond). The
depth of the state that it holds is a circle. Where the two lie apart, both and what is between
them are red.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from . import palette

Rows = list[dict[str, Any]]

LANE = 28  # pixels of height for one node
FRAME = 56  # pixels for the axis
ROOM = 0.42  # part of the greatest depth that is left free behind it, for the words
LINES_MAX = 64  # lines of the grid that can be told apart


def laid_out(nodes: Rows) -> Rows:
    """Nodes in the order of the tree, each below its parent, with `lane` and `x` (where its edge
    begins). Parents that are not among the nodes count as the root."""
    known = {row["node"] for row in nodes}
    below: dict[int | None, Rows] = {}
    for row in sorted(nodes, key=lambda row: (row["label"], row["node"])):
        parent = row["parent"] if row["parent"] in known else None
        below.setdefault(parent, []).append(row)
    lanes: Rows = []
    # A label that is wrong can't make a cycle: a parent's is less than its child's.
    rest: list[tuple[dict[str, Any], dict[str, Any] | None]]
    rest = [(row, None) for row in reversed(below.get(None, []))]
    while rest:
        row, above = rest.pop()
        placed = row | {
            "lane": len(lanes),
            "x": above["label"] if above else 0,
            "above": above["lane"] if above else None,
            "red": bool(row["wrong"] or row["off_grid"]),
        }
        lanes.append(placed)
        rest += [(child, placed) for child in reversed(below.get(row["node"], []))]
    return lanes


def words(row: dict[str, Any]) -> str:
    """What stands beside a node."""
    if row["wrong"]:
        return f"filed under {row['label']}, the state has {_apart(row)}"
    if row["off_grid"]:
        return f"{row['label']} is off the grid of {row['grid']}"
    by = f" · from {row['request_id']}" if row["request_id"] else ""
    gone = "" if row["held"] else " · gone"
    return f"slot {row['slot']}{by} · read {row['reads']}×{gone}"


def _apart(row: dict[str, Any]) -> str:
    return ", ".join(str(depth) for depth in row["depths"] if depth != row["label"])


def _states(lanes: Rows) -> Rows:
    """Depths that nodes' states have: one circle for each."""
    return [
        row | {"depth": depth, "apart": depth != row["label"]}
        for row in lanes
        for depth in row["depths"] or []
    ]


def _lane(lanes: Rows) -> alt.Y:
    names = ", ".join(f"'node {row['node']}'" for row in lanes)
    return alt.Y(
        "lane:Q",
        scale=alt.Scale(domain=[len(lanes) - 0.5, -0.6], nice=False),
        axis=alt.Axis(
            title=None, values=list(range(len(lanes))), labelExpr=f"[{names}][datum.value]",
            grid=False, ticks=False, domain=False, labelOverlap=False,
        ),
    )  # fmt: skip


def _grid(grids: Sequence[int], deepest: float) -> alt.Chart:
    """Lines where a state may be filed, as long as they can be told apart."""
    step = min(grids, default=0)
    lines = int(deepest // step) if step else 0
    places = [{"x": step * n} for n in range(1, lines + 1)] if lines <= LINES_MAX else []
    return (
        alt.Chart(alt.Data(values=places))
        .mark_rule(color=palette.INK, opacity=0.3, strokeDash=[2, 3])
        .encode(x="x:Q")
    )


def tree(nodes: Rows) -> alt.LayerChart:
    """Draw what `queries.nodes` answered. A click on a bar selects (`node` parameter) its node."""
    lanes = laid_out(nodes)
    states = _states(lanes)
    deepest = max([row["label"] for row in lanes] + [row["depth"] for row in states], default=1)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, max(deepest, 1) * (1 + ROOM)], nice=False),
        axis=alt.Axis(title="depth (tokens)", grid=False, tickCount=10),
    )
    y = _lane(lanes)
    return alt.layer(
        _grid([row["grid"] for row in lanes if row["grid"]], deepest),
        _edges(lanes, x, y),
        _bars(lanes, x, y),
        *_labels(lanes, x, y),
        *_depths(states, x, y),
        _texts(lanes, x, y),
    ).properties(height=len(lanes) * LANE + FRAME)


def _edges(lanes: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    """From a parent's end down to where the child's bar begins."""
    return (
        alt.Chart(alt.Data(values=[row for row in lanes if row["above"] is not None]))
        .mark_rule(color=palette.INK, strokeWidth=1.2)
        .encode(x=x, y=y, y2="above:Q")
    )


def _bars(lanes: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    rows = [row | {"colour": palette.owner(row["request"])} for row in lanes]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(height=9, cornerRadius=2, cursor="pointer")
        .encode(
            x=x,
            x2="label:Q",
            y=y,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.condition("datum.held", alt.value(0.85), alt.value(0.3)),
            tooltip=[
                alt.Tooltip("node:Q"), alt.Tooltip("parent:Q", title="resumed from node"),
                alt.Tooltip("label:Q"), alt.Tooltip("depths:N", title="depth of the state"),
                alt.Tooltip("grid:Q"), alt.Tooltip("slot:Q"), alt.Tooltip("generation:Q"),
                alt.Tooltip("request_id:N", title="given by"),
                alt.Tooltip("reads:Q", title="restores"), alt.Tooltip("held:N", title="still held"),
            ],
        )
        .add_params(alt.selection_point(name="node", fields=["node"], on="click"))
    )  # fmt: skip


def _labels(lanes: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    colour = alt.condition("datum.red", alt.value(palette.CONTRADICTION), alt.value(palette.INK))
    at_label = x.copy()
    at_label.shorthand = "label:Q"
    base = alt.Chart(alt.Data(values=lanes)).encode(x=at_label, y=y)
    return [base.mark_point(shape="diamond", size=110, filled=True, opacity=1).encode(color=colour)]


def _depths(states: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    at_depth = x.copy()
    at_depth.shorthand = "depth:Q"
    base = alt.Chart(alt.Data(values=[row for row in states if row["apart"]])).encode(
        x=at_depth, y=y
    )
    gap = base.mark_rule(color=palette.CONTRADICTION, strokeWidth=3).encode(x2="label:Q")
    right = alt.Chart(alt.Data(values=[row for row in states if not row["apart"]])).encode(
        x=at_depth, y=y
    )
    return [
        gap,
        right.mark_circle(size=28, color="white", opacity=1),
        base.mark_circle(size=120, color=palette.CONTRADICTION, opacity=1),
    ]


def _texts(lanes: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    rows = [
        row | {"end": max([row["label"], *(row["depths"] or [])]), "text": words(row)}
        for row in lanes
    ]
    at_end = x.copy()
    at_end.shorthand = "end:Q"
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_text(align="left", dx=13, fontSize=11, limit=330)
        .encode(
            x=at_end,
            y=y,
            text="text:N",
            color=alt.condition(
                "datum.red", alt.value(palette.CONTRADICTION), alt.value(palette.INK)
            ),
        )
    )
