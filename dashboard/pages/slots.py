"""Slots: the life lines, and the history of the slot that is selected."""

from __future__ import annotations

from typing import Any

import streamlit as st

from slotscope.dashboard import charts, links, queries, widgets
from slotscope.dashboard.queries import Axis, Filter
from slotscope.dashboard.source import Watch
from slotscope.instrument.event import ENUMS, Op, op_name

LANES_MAX = 24
HISTORY_MAX = 500
CONTRADICTIONS_MAX = 500
BINS = 240
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
        unit = st.segmented_control(
            "Axis", ["time", "order"], default="time", required=True, key="axis",
            bind="query-params", on_change=_whole_axis,
            help="Time, or the order in which acts take effect: every act has the same width.",
        )  # fmt: skip
        axis = widgets.axis_of(process, unit or "time")
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
        window = _window(axis)
        zoomed = (window.low, window.high) != (axis.low, axis.high)
        st.button("Show all", on_click=_whole_axis, disabled=not zoomed, icon=":material/zoom_out:")
    return axis, window, Filter(_slots_of(typed or ""), request, role, tuple(ops))


def _whole_axis() -> None:
    """A window of seconds means nothing on the order axis: show all of it."""
    links.keep(**{"from": None, "until": None})


def _window(whole: Axis) -> Axis:
    """The part of the axis that the address names, or all of it."""
    low, high = links.number("from"), links.number("until")
    low = whole.low if low is None else min(max(low, whole.low), whole.high)
    high = whole.high if high is None else min(max(high, whole.low), whole.high)
    if high <= low:
        low, high = whole.low, whole.high
    return Axis(whole.process, whole.unit, whole.zero_ns, low, high)


def _zoomed() -> None:
    """The strip was dragged over: take its window into the address."""
    drawn = st.session_state["strip"].selection.get("zoom", {}).get("x")
    if drawn:
        links.keep(**{"from": f"{drawn[0]:.6f}", "until": f"{drawn[1]:.6f}"})


def _picked() -> None:
    """A bar was clicked: take its slot into the address."""
    points = st.session_state["lines"].selection.get("slot", [])
    if points:
        links.keep(pool=points[0]["pool"], slot=points[0]["slot"])


def _strip(watch: Watch, whole: Axis, window: Axis) -> None:
    bins = queries.density(watch, whole, bins=BINS).to_pylist()
    st.altair_chart(
        charts.strip(bins, whole.unit, whole.low, whole.high, BINS, (window.low, window.high)),
        key="strip", on_select=_zoomed, selection_mode="zoom",
        alt="How many acts on slots there were, over the whole trace",
    )  # fmt: skip


def _contradictions(watch: Watch, axis: Axis) -> list[dict[str, Any]]:
    """Findings and their consequences, placed on the axis."""
    rows = []
    findings = [f for cause in watch.report().findings for f in (cause, *cause.also)]
    for finding in findings:
        if finding.process != axis.process or finding.slot is None:
            continue
        x = float(finding.position)
        if axis.unit == "time":
            x = ((finding.time_ns or axis.zero_ns) - axis.zero_ns) / 1e9
        if axis.low <= x <= axis.high:
            told = {"detector": f"{finding.detector} {finding.name}", "because": finding.because}
            rows.append({"pool": finding.pool, "slot": finding.slot, "x": x, **told})
    return rows[:CONTRADICTIONS_MAX]


def _lines(watch: Watch, window: Axis, chosen: Filter) -> None:
    wrong = _contradictions(watch, window)
    first = tuple({row["slot"] for row in wrong})
    lanes = queries.lanes(watch, window, chosen, limit=LANES_MAX, first=first).to_pylist()
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
            names, window.unit, window.low, window.high,
            ownership=queries.ownership(watch, window, chosen, slots).to_pylist(),
            writes=queries.writes(watch, window, chosen, slots).to_pylist(),
            marks=queries.marks(watch, window, chosen, slots).to_pylist(),
            contradictions=[row for row in wrong if charts.lane_name(row) in names],
        ),
        key="lines", on_select=_picked, selection_mode="slot",
        alt="Life lines: which request or tree node holds each slot over time",
    )  # fmt: skip
    hidden = lanes[0]["total"] - len(lanes)
    st.caption(
        "**Bars**: thick = live, medium = keep or held by the tree (grey), thin = spare. "
        "**Dashed outlines**: writes in flight, from launch to result. "
        "**Red**: a contradiction. Drag over the strip above to zoom."
        + (f" The {len(lanes)} busiest slots are drawn, {hidden} are not." if hidden else "")
    )


def _history(watch: Watch, window: Axis, chosen: Filter) -> None:
    slot, pool = links.whole("slot"), links.whole("pool") or 0
    if slot is None:
        st.caption("Click a bar to read its slot's history here.")
        return
    events = queries.history(watch, window, chosen, pool=pool, slot=slot, limit=HISTORY_MAX)
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
    if window.unit == "order":
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
        whole, window, chosen = _controls(watch, process)
        _strip(watch, whole, window)
        _lines(watch, window, chosen)
        _history(watch, window, chosen)

    widgets.refreshing(body)
