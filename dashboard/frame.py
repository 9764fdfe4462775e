"""What stands around every page: the style, the header, and the refusal of a foreign link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from . import queries, widgets
from .source import Watch

STYLE = Path(__file__).with_name("style.css")

ICON = Path(__file__).with_name("icon.svg")

FIRST = ("engine", "model", "strategy", "speculative_algorithm")
"""Notes that the header shows, in this order; the others follow in a popover."""

STATES: dict[str, tuple[str, str, Any]] = {
    "running": ("live", ":material/sensors:", "green"),
    "stopped": ("ended", ":material/stop_circle:", "gray"),
    "crashed": ("crashed", ":material/heart_broken:", "red"),
}
"""Badge of a trace: what its processes do, or how they ended."""

PATCHES = "without_patch"
"""The note that names the patches that are off."""


def dress() -> None:
    """Add the style sheet and the mark."""
    st.html(STYLE)
    st.logo(str(ICON), size="small")


def _facts(watch: Watch, process: dict[str, Any]) -> None:
    notes = queries.notes(watch, process["process"])
    widgets.fact("process", f"pid {process['pid']}" if process["pid"] else process["process"])
    for key in FIRST:
        if notes.get(key):
            widgets.fact(key.replace("_", " "), notes[key])
    with st.container(width="content", gap=None, key="fact-patches"):
        st.caption("patches off")
        off = notes.get(PATCHES, "")
        st.text(off or "none")
    widgets.fact("events", f"{process['events']:,}")
    widgets.fact("slots", process["slots"])
    widgets.fact("requests", f"{process['requests']:,}")
    others = {key: value for key, value in notes.items() if key not in (*FIRST, PATCHES)}
    if others:
        with st.popover("more", icon=":material/info:", type="tertiary"):
            for key, value in sorted(others.items()):
                widgets.fact(key, value)


def header(watch: Watch) -> None:
    """The trace, its process and settings, and whether more events are on their way."""
    with st.container(key="header", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(str(watch.directory))
            fresh = queries.freshness(watch)
            label, icon, colour = STATES[fresh["state"]]
            st.badge(label, icon=icon, color=colour)
            if fresh["until"] is not None:
                st.caption(f"events up to {fresh['until']:%Y-%m-%d %H:%M:%S} UTC", width="content")
            st.space("stretch")
            st.toggle("Refresh", key="live", bind="query-params", value=fresh["state"] == "running")
        process = widgets.process_of(watch)
        if process is not None:
            with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
                _facts(watch, process)


def other_trace(directory: Path) -> None:
    """The link was made for a trace that is not the one served here."""
    st.warning("This link was made for another trace.", icon=":material/link_off:")
    widgets.fact("the link names", st.query_params.get("trace"))
    widgets.fact("this dashboard shows", directory)
    st.markdown("Open the other one with `slotscope dashboard TRACE`, or go on with this one:")
    if st.button("Show this trace"):
        st.query_params.clear()
        st.rerun()
