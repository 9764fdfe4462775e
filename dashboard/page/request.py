"""Request: its chunks, steps and verifies on one axis, what it saved, and what is claimed of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from slotscope.dashboard import contradictions, links, queries, request_chart, widgets, window
from slotscope.dashboard.queries import Axis
from slotscope.dashboard.source import Watch

REQUESTS_MAX = 500
"""Requests that are offered, the latest ones; the id of any other can be typed."""

STEPS_MAX = 2_000
CLAIMS_MAX = 600
EVENTS_MAX = 1_000


def _chosen(watch: Watch, axis: Axis) -> str | None:
    """The request of the address; else one that something is wrong with, else the latest."""
    rows = queries.requests(watch, axis, limit=REQUESTS_MAX).to_pylist()
    names: list[str] = [row["request_id"] for row in rows]
    chosen: str | None = st.selectbox(
        "Request", names, index=None, accept_new_options=True, key="request",
        bind="query-params", placeholder="the first with a finding, or the latest", width=420,
    )  # fmt: skip
    if chosen or not names:
        return chosen
    known = dict(zip((row["request"] for row in rows), names, strict=True))
    found = (known.get(row["request"]) for row in contradictions.placed(watch, axis))
    return next((name for name in found if name), names[0])


def _facts(stay: dict[str, Any]) -> None:
    with st.container(horizontal=True, gap="medium"):
        widgets.fact("prompt", "unknown" if stay["prompt"] is None else f"{stay['prompt']:,}")
        widgets.fact("outcome", stay["outcome"] or "not ended")
        if len(stay["requests"]) > 1:
            widgets.fact("attempts", len(stay["requests"]))
        if stay["grid"]:
            widgets.fact("grid", stay["grid"])
        if stay["verifies"]:
            widgets.fact("verifies", stay["verifies"])
            widgets.fact("mean accept length", f"{stay['accepted'] / stay['verifies']:.2f}")


def _of(axis: Axis, stay: dict[str, Any]) -> Axis:
    """The part of the axis in which the request was there."""
    margin = max((stay["high"] - stay["low"]) * 0.03, (axis.high - axis.low) * 1e-4)
    return replace(
        axis, low=max(stay["low"] - margin, axis.low), high=min(stay["high"] + margin, axis.high)
    )


def _picture(watch: Watch, whole: Axis, shown: Axis, request: str, stay: dict[str, Any]) -> None:
    steps = queries.steps(watch, shown, request, limit=STEPS_MAX).to_pylist()
    claims = queries.claims(watch, shown, request, limit=CLAIMS_MAX).to_pylist()
    if not steps and not claims:
        widgets.teach(
            "Nothing moved or named a state of it here", "Show all, or choose another request."
        )
        return
    where = (shown.unit, shown.low, shown.high)
    widgets.still(
        request_chart.depths(*where, steps=steps, claims=claims, grid=stay["grid"]),
        key="depths", alt="Depth of the request's state over time, and the depths claimed for it",
    )  # fmt: skip
    if any(row["accept_len"] for row in steps):
        widgets.still(
            request_chart.accepts(*where, steps), key="accepts", alt="Accept length of each verify"
        )
    leases = {(row["pool"], row["slot"], row["generation"]) for row in claims}
    contradictions.listed(
        contradictions.placed(watch, whole),
        lambda row: (
            row["request"] in stay["requests"]
            or (row["pool"], row["slot"], row["generation"]) in leases
        ),
    )
    full = len(steps) == STEPS_MAX or len(claims) == CLAIMS_MAX
    st.caption(
        "**Lines**: from launch to result, at the depth that the live state then has; triangles: "
        "where it begins. **Dotted**: the grid on which it is saved. **Squares**: saved into a "
        "keep or spare slot. **Rings**: a depth of the grid that was passed and not saved. "
        "**Diamonds**: a depth claimed for a state. **Red**: the state (circle) has another one."
        + (" There is more than is drawn: zoom in." if full else "")
    )


def _details(watch: Watch, shown: Axis, request: str) -> None:
    events = queries.told(watch, shown, request, limit=EVENTS_MAX)
    with st.container(horizontal=True, vertical_alignment="center"):
        full = ", the first of more" if events.num_rows == EVENTS_MAX else ""
        st.caption(f"{events.num_rows:,} events of it in the window{full}", width="content")
        links.go(
            "slots", "Its slots on the life lines", icon=":material/view_timeline:", request=request
        )
    widgets.events_table(events, key="told")


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is None or not process["requests"]:
            widgets.no_events()
            return
        with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
            whole = widgets.axis_of(process, window.unit())
            request = _chosen(watch, whole)
            stay = None if request is None else queries.stay(watch, whole, request)
            if stay is not None:
                its = _of(whole, stay)
                shown = window.of(its)
                window.show_all(its, shown)
        if request is None or stay is None:
            widgets.teach(
                "No such request", "Choose one of the list: nobody speaks of this one here."
            )
            return
        with st.container(key="request-name"):
            st.text(request)
        _facts(stay)
        window.strip(watch, its, shown)
        _picture(watch, whole, shown, request, stay)
        _details(watch, shown, request)

    widgets.refreshing(body)
