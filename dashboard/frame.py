"""What stands around every page: the style, the header, and the refusal of a foreign link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from . import queries, widgets
from .source import Watch

STYLE = Path(__file__).with_name("style.css")
ICON = Path(__file__).with_name("icon.svg")

FIRST = {
    "engine": "engine.name",
    "model": "engine.model_path",
    "strategy": "engine.mamba_radix_cache_strategy",
    "speculation": "engine.speculative_algorithm",
}
"""Notes that the header shows, by what it calls them; all of them are in a popover."""

PATCHES = "engine.without_patch"
"""The note that names the patches that are off."""

STATES: dict[str, tuple[str, str, Any]] = {
    "running": ("live", ":material/sensors:", "green"),
    "stopped": ("ended", ":material/stop_circle:", "gray"),
    "crashed": ("crashed", ":material/heart_broken:", "red"),
}
"""Badge of a trace: what its processes do, or how they ended."""


def dress() -> None:
    """Add the style sheet and the mark."""
    st.html(STYLE)
    st.logo(str(ICON), size="small")


def _identity(watch: Watch) -> None:
    """The trace, what its processes do, and how far it has been read."""
    fresh = queries.freshness(watch)
    label, icon, colour = STATES[fresh["state"]]
    with st.container(horizontal=True, vertical_alignment="center", key="identity"):
        st.text(str(watch.directory))
        st.badge(label, icon=icon, color=colour)
        if fresh["until"] is not None:
            st.caption(f"events up to {fresh['until']:%Y-%m-%d %H:%M:%S} UTC", width="content")


def _facts(watch: Watch, process: dict[str, Any]) -> None:
    """What the process says of itself, and how much it has said."""
    notes = queries.notes(watch, process["process"])
    widgets.fact("process", f"pid {process['pid']}")
    for label, key in FIRST.items():
        if notes.get(key):
            widgets.fact(label, notes[key].rpartition("/")[2])
    if PATCHES in notes:
        widgets.fact("patches off", notes[PATCHES] or "none")
    for count in ("events", "slots", "requests"):
        widgets.fact(count, f"{process[count]:,}")
    if notes:
        with st.popover("all settings", icon=":material/tune:", type="tertiary", width="content"):
            rows = [{"setting": key, "value": value} for key, value in notes.items()]
            st.dataframe(rows, hide_index=True, width=520, key="settings")


def _controls(watch: Watch) -> None:
    """Which process, where there are several; and whether the page refreshes itself."""
    processes = queries.processes(watch).to_pylist()
    pids = {str(row["process"]): f"pid {row['pid']}, {row['events']:,} events" for row in processes}
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        if len(pids) > 1:
            st.selectbox(
                "Process", list(pids), format_func=lambda key: pids[key], key="process",
                bind="query-params", label_visibility="collapsed", width=230,
            )  # fmt: skip
        running = queries.freshness(watch)["state"] == "running"
        st.toggle(
            "Refresh", key="live", bind="query-params", value=running,
            help=f"Read the trace again every {widgets.REFRESH_S} seconds, if it has grown.",
        )  # fmt: skip


def header(watch: Watch) -> None:
    """The trace, its process and settings.

    What refreshes itself is kept apart from the controls: one inside would refresh only the header.
    """

    def facts() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is not None:
            with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
                _facts(watch, process)

    with st.container(key="header"):
        left, right = st.columns([5, 2])
        with right:
            _controls(watch)
        with left:
            widgets.refreshing(lambda: _identity(watch))
        widgets.refreshing(facts)


def other_trace(directory: Path) -> None:
    """The link was made for a trace that is not the one served here."""
    st.warning("This link was made for another trace.", icon=":material/link_off:")
    widgets.fact("the link names", st.query_params.get("trace"))
    widgets.fact("this dashboard shows", directory)
    st.markdown("Open the other one with `slotscope dashboard TRACE`, or go on with this one:")
    if st.button("Show this trace"):
        st.query_params.clear()
        st.rerun()
