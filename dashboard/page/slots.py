"""Slots: the life lines, and the history of the slot that is selected."""

from __future__ import annotations

from typing import Any

import streamlit as st

from slotscope.dashboard import charts, contradictions, links, queries, widgets, window
from slotscope.dashboard.queries import Axis, Filter
from slotscope.dashboard.source import Watch
from slotscope.instrument.event import ENUMS, Op, op_name

LANES_MAX = 24
HISTORY_MAX = 500
CONTRADICTIONS_MAX = 500
REQUESTS_MAX = 500
"""Requests that the filter offers, the latest ones; the id of any other can be typed."""

ROLES = [role.name.lower() for role in ENUMS["role"]]
OPS = [op_name(op) for op in Op if op is not Op.AMEND and not op.name.startswith(("REQ", "FORW"))]


def _slots_of(text: str) -> tuple[int, ...]:
    """Slots of a list such as `3, 7-9`. What isn't a number or a range is passed over."""
    slots: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            slots.update(range(int(first), min(int(last or first), int(first) + 4096) + 1))
    return tuple(sorted(slots))


def _controls(watch: Watch, process: dict[str, Any]) -> tuple[Axis, Axis, Filter]:
    """The filters, each bound to the address. Returns the whole axis, the window, the filter."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
        axis = widgets.axis_of(process, window.unit())
        typed = st.text_input(
            "Slots", key="slots", bind="query-params", placeholder="all, or 3, 7-9", width=150
        )
        names = queries.requests(watch, axis, limit=REQUESTS_MAX)["request_id"].to_pylist()
        request = st.selectbox(
            "Request", names, index=None, accept_new_options=True, key="request",
            bind="query-params", placeholder="all", width=220,
        )  # fmt: skip
        role = st.selectbox(
            "Role", ROLES, index=None, key="role", bind="query-params", placeholder="all",
            width=130, help=widgets.HELP["role"],
        )  # fmt: skip
        ops = st.multiselect(
            "Operations", OPS, key="op", bind="query-params", placeholder="all", width=260
        )
        shown = window.of(axis)
        window.show_all(axis, shown)
    return axis, shown, Filter(_slots_of(typed or ""), request, role, tuple(ops))


def _picked() -> None:
    """A bar was clicked: take its slot into the address."""
    points = st.session_state["lines"].selection.get("slot", [])
    if points:
        links.keep(pool=points[0]["pool"], slot=points[0]["slot"])


def _lines(watch: Watch, shown: Axis, chosen: Filter) -> None:
    wrong = [row for row in contradictions.placed(watch, shown) if row["slot"] is not None]
    wrong = wrong[:CONTRADICTIONS_MAX]
    first = tuple({row["slot"] for row in wrong})
    lanes = queries.lanes(watch, shown, chosen, limit=LANES_MAX, first=first).to_pylist()
    if not lanes:
        widgets.teach(
            "No slot fits the filters",
            "Take a filter away, or show the whole axis. A slot appears once an event names it.",
        )
        return
    slots = tuple({lane["slot"] for lane in lanes})
    names = [charts.lane_name(lane) for lane in lanes]
    st.altair_chart(
        charts.life_lines(
            names, shown.unit, shown.low, shown.high,
            ownership=queries.ownership(watch, shown, chosen, slots).to_pylist(),
            writes=queries.writes(watch, shown, chosen, slots).to_pylist(),
            marks=queries.marks(watch, shown, chosen, slots).to_pylist(),
            contradictions=[row for row in wrong if charts.lane_name(row) in names],
        ),
        key="lines", on_select=_picked, selection_mode="slot",
        alt="Life lines: which request or tree node holds each slot over time",
    )  # fmt: skip
    contradictions.listed(wrong)
    hidden = lanes[0]["total"] - len(lanes)
    st.caption(
        "**Bars**: thick = live, medium = keep or held by the tree (grey), thin = spare. "
        "**Dashed outlines**: writes in flight, from launch to result. "
        "**Red**: a contradiction. Drag over the strip above to zoom."
        + (f" The {len(lanes)} busiest slots are drawn, {hidden} are not." if hidden else "")
    )


def _history(watch: Watch, shown: Axis, chosen: Filter) -> None:
    slot, pool = links.whole("slot"), links.whole("pool") or 0
    if slot is None:
        st.caption("Click a bar to read its slot's history here.")
        return
    events = queries.history(watch, shown, chosen, pool=pool, slot=slot, limit=HISTORY_MAX)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader(f"History of slot {slot}", anchor=False, width="content")
        st.caption(
            f"{events.num_rows} events in the window"
            + (", the first of more" if events.num_rows == HISTORY_MAX else "")
        )
    if events.num_rows == 0:
        widgets.teach(
            f"Slot {slot} has no event in this window", "Show the whole axis, or clear the filters."
        )
        return
    if shown.unit == "order":
        events = events.drop_columns("x")  # It is the position, which stands there already.
    widgets.events_table(events, key="history")


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is None or not process["slots"]:
            widgets.no_events()
            return
        whole, shown, chosen = _controls(watch, process)
        window.strip(watch, whole, shown)
        _lines(watch, shown, chosen)
        _history(watch, shown, chosen)

    widgets.refreshing(body)
