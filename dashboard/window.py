"""The window: the part of the horizontal axis that a page shows, kept in the address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import streamlit as st

from . import charts, links, queries
from .queries import Axis
from .source import Watch

BINS = 240
"""Parts of the strip over the whole axis."""


def unit() -> str:
    """The control that says whether the axis is time or order."""
    chosen = st.segmented_control(
        "Axis", ["time", "order"], default="time", required=True, key="axis",
        bind="query-params", on_change=forget,
        help="Time, or the order in which acts take effect: every act has the same width.",
    )  # fmt: skip
    return chosen or "time"


def forget() -> None:
    """A window of seconds means nothing on the order axis: show what the page shows by itself."""
    links.keep(**{"from": None, "until": None})


def named() -> bool:
    """The address names a window."""
    return links.number("from") is not None or links.number("until") is not None


def of(whole: Axis) -> Axis:
    """The part of the axis that the address names, or all of it."""
    low, high = links.number("from"), links.number("until")
    low = whole.low if low is None else min(max(low, whole.low), whole.high)
    high = whole.high if high is None else min(max(high, whole.low), whole.high)
    if high <= low:
        low, high = whole.low, whole.high
    return replace(whole, low=low, high=high)


def show_all(whole: Axis, shown: Axis) -> None:
    """The button that leads back to the whole axis."""

    def widen() -> None:
        links.keep(**{"from": f"{whole.low:.6f}", "until": f"{whole.high:.6f}"})

    zoomed = (shown.low, shown.high) != (whole.low, whole.high)
    st.button("Show all", on_click=widen, disabled=not zoomed, icon=":material/zoom_out:")


def strip(watch: Watch, whole: Axis, shown: Axis, *, wrong: Iterable[float] = ()) -> None:
    """Acts over the whole axis, with the places in `wrong` red. Dragging takes a part of it."""

    def zoomed() -> None:
        drawn = st.session_state["strip"].selection.get("zoom", {}).get("x")
        if drawn:
            links.keep(**{"from": f"{drawn[0]:.6f}", "until": f"{drawn[1]:.6f}"})

    bins = queries.density(watch, whole, bins=BINS).to_pylist()
    st.altair_chart(
        charts.strip(
            bins, whole.unit, whole.low, whole.high, BINS, (shown.low, shown.high), list(wrong)
        ),
        key="strip", on_select=zoomed, selection_mode="zoom",
        alt="How many acts on slots there were, over the whole trace",
    )  # fmt: skip
