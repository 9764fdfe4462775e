"""Parts that pages share: the header, the refreshing frame, tables, empty states.

Names of requests, paths and notes are data from outside. They go through `st.text`, `st.code`,
charts and tables, which show them as they are; never through Markdown or HTML.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair
import pyarrow as pa
import streamlit as st

from slotscope.instrument.event import columns

from . import links, queries
from .source import Watch

REFRESH_S = 2

HELP = {name: meaning for name, _, meaning in columns()} | {
    "event": "name of the event: its writer and its number there",
    "x": "when it takes effect, in seconds since the first event",
    "request_id": "request, as the server names it",
}
"""What a column of a table means, told where the event is defined."""

LABELS = {"x": "time, s", "request_id": "request", "generation": "lease"}
"""Heads of columns that read better than their names in SQL."""


def refreshing(body: Callable[[], None]) -> None:
    """Run a page's body; with the live toggle on, again every REFRESH_S seconds."""
    every = REFRESH_S if st.session_state.get("live") else None
    st.fragment(body, run_every=every)()


def fact(label: str, value: object) -> None:
    """A small label above a value that is shown as it is."""
    with st.container(width="content", gap=None, key=f"fact-{label.replace(' ', '-')}"):
        st.caption(label)
        st.text(str(value))


def still(chart: altair.Chart | altair.LayerChart, *, key: str, alt: str) -> None:
    """A chart in which nothing can be selected. Streamlit names such a one by its frame alone."""
    with st.container(key=key):
        st.altair_chart(chart, alt=alt)


def events_table(table: pa.Table, *, key: str) -> None:
    """Events with the meaning of each column on its head; columns without a value are left out."""
    shown = [name for name in table.column_names if table[name].null_count < table.num_rows]
    config: dict[str, Any] = {
        name: st.column_config.Column(LABELS.get(name), help=HELP[name])
        for name in shown
        if name in HELP
    }
    config["x"] = st.column_config.NumberColumn(LABELS["x"], help=HELP["x"], format="%.6g")
    st.dataframe(
        table.select(shown).to_pandas(types_mapper=None, integer_object_nulls=True),
        key=key,
        hide_index=True,
        placeholder="",
        column_config=config,
    )


def teach(title: str, body: str, command: str | None = None) -> None:
    """An empty state: what would be here, and how to get it."""
    with st.container(border=True, key=f"teach-{title[:12].replace(' ', '-')}"):
        st.markdown(f"**{title}**")
        st.markdown(body)
        if command:
            st.code(command, language="shell")


def no_events() -> None:
    """The trace is there, but nobody has said anything about a slot yet."""
    teach(
        "No slot events yet",
        "The trace directory is right, but it holds no event. An engine writes to it once it is "
        "started with tracing on; this page refreshes itself while one runs. Which hooks are live:",
        "slotscope doctor TRACE",
    )


def process_of(watch: Watch) -> dict[str, Any] | None:
    """The process that the page is about: the one in the address, else the busiest."""
    rows: list[dict[str, Any]] = queries.processes(watch).to_pylist()
    wanted = links.whole("process")
    return next((row for row in rows if row["process"] == wanted), rows[0] if rows else None)


def axis_of(process: dict[str, Any], unit: str) -> queries.Axis:
    """The whole axis of a process."""
    seconds = (process["last_ns"] - process["first_ns"]) / 1e9
    high = max(seconds, 1e-6) if unit == "time" else float(process["positions"])
    return queries.Axis(process["process"], unit, process["first_ns"], 0.0, high)
