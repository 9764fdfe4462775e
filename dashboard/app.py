"""The dashboard's script: the frame around the pages. Started by `slotscope dashboard TRACE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from slotscope.dashboard import frame, links
from slotscope.dashboard.page import capacity, findings, pipeline, request, slots, sql, tree
from slotscope.dashboard.source import Watch

PAGES: dict[str, tuple[str, str, Callable[[Watch], None]]] = {
    "findings": ("Findings", ":material/gavel:", findings.page),
    "slots": ("Slots", ":material/view_timeline:", slots.page),
    "pipeline": ("Pipeline", ":material/stacked_bar_chart:", pipeline.page),
    "tree": ("Tree", ":material/account_tree:", tree.page),
    "request": ("Request", ":material/timeline:", request.page),
    "capacity": ("Capacity", ":material/bar_chart:", capacity.page),
    "sql": ("SQL", ":material/database:", sql.page),
}


def _watch(directory: str) -> Watch:
    return Watch(Path(directory))


watch: Callable[[str], Watch] = st.cache_resource(show_spinner="Reading the trace")(_watch)
"""One reading of a trace, shared by all browsers."""


def main(directory: str, *, page: str | None = None) -> None:
    """Draw one page: the one in the address, or the one named (tests name it)."""
    st.set_page_config(page_title="slotscope", page_icon=str(frame.ICON), layout="wide")
    frame.dress()
    watched = watch(directory)
    pages = [
        st.Page(
            partial(draw, watched),
            title=title,
            icon=icon,
            url_path=name,
            default=name == (page or "findings"),
        )  # fmt: skip
        for name, (title, icon, draw) in PAGES.items()
    ]
    current = st.navigation(pages, position="top")
    st.session_state["pages"] = dict(zip(PAGES, pages, strict=True))
    if not links.for_this(watched.directory):
        frame.other_trace(watched.directory)
        return
    frame.header(watched)
    current.run()


if __name__ == "__main__":
    main(sys.argv[1])
