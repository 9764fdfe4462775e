"""Tree: under which depth each node files its state, which depth the state has, and who gave it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from slotscope.dashboard import contradictions, links, queries, tree_chart, widgets
from slotscope.dashboard.queries import Axis
from slotscope.dashboard.source import Watch

NODES_MAX = 60
EVENTS_MAX = 500
TOLD_MAX = 4


def _sentence(row: dict[str, Any]) -> str:
    if not row["wrong"]:
        return f"Node {row['node']} is filed under {row['label']}, off its grid of {row['grid']}."
    apart = ", ".join(str(depth) for depth in row["depths"] if depth != row["label"])
    pools = row["wrong_pools"]
    stage = f", stage {', '.join(map(str, pools))}" if pools != [0] else ""
    return (
        f"Node {row['node']} is filed under {row['label']} tokens, but the state in its slot "
        f"{row['slot']}{stage} has {apart}."
    )


def _argument(rows: list[dict[str, Any]]) -> None:
    wrong = [row for row in rows if row["wrong"] or row["off_grid"]]
    if not wrong:
        return
    with st.container(key="argument-nodes", gap=None):
        for row in wrong[:TOLD_MAX]:
            st.text(_sentence(row))
        if rows[0]["wrong_total"] > TOLD_MAX:
            st.caption(f"and {rows[0]['wrong_total'] - TOLD_MAX:,} more")


def _picked() -> None:
    """A node was clicked: take it into the address."""
    points = st.session_state["tree"].selection.get("node", [])
    if points:
        links.keep(node=points[0]["node"])


def _picture(watch: Watch, axis: Axis, rows: list[dict[str, Any]]) -> None:
    _argument(rows)
    st.altair_chart(
        tree_chart.tree(rows), key="tree", on_select=_picked, selection_mode="node",
        alt="Nodes of the radix tree by depth, with the depth of the state that each holds",
    )  # fmt: skip
    leases = {(row["slot"], row["generation"]) for row in rows}
    found = contradictions.placed(watch, axis)
    contradictions.listed(found, lambda row: (row["slot"], row["generation"]) in leases)
    left = rows[0]["total"] - len(rows)
    st.caption(
        "**Bars**: from where the parent ends to the label (diamond), coloured by who gave it; "
        "pale: the node has lost its state. **White dot**: the state has that depth. **Red**: it "
        "has another one (circle), or the label is off the grid (dotted lines). A parent is the "
        "deepest node that the giver had before."
        + (f" {left:,} more nodes are not drawn, none of them wrong." if left > 0 else "")
    )


def _details(watch: Watch, axis: Axis, node: int | None) -> None:
    if node is None:
        st.caption("Click a bar to read what happened to its node.")
        return
    events = queries.filed(watch, axis, node=node, limit=EVENTS_MAX)
    st.subheader(f"Node {node}", anchor=False)
    slots = [slot for slot in events["slot"].to_pylist() if slot is not None]
    if slots:
        links.go(
            "slots", f"Slot {slots[0]} on the life lines", icon=":material/view_timeline:",
            slot=slots[0], pool=events["pool"][0].as_py(),
        )  # fmt: skip
    widgets.events_table(events, key="filed")


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is None:
            widgets.no_events()
            return
        held = st.segmented_control(
            "Nodes", ["all", "held"], default="all", required=True, key="nodes",
            bind="query-params", help="All that ever had a state, or those that still hold one.",
        )  # fmt: skip
        axis, node = widgets.axis_of(process, "time"), links.whole("node")
        answer = queries.nodes(watch, axis, held=held == "held", limit=NODES_MAX, first=node)
        if answer.num_rows == 0:
            widgets.teach(
                "No node has a state",
                "A node appears once a request donates a checkpoint to the tree: after its "
                "prompt has passed a checkpoint depth.",
            )
            return
        _picture(watch, axis, answer.to_pylist())
        _details(watch, axis, node)

    widgets.refreshing(body)
