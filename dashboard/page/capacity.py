"""Capacity: what the slots are used for over time, what is reused, and what is evicted for whom."""

from __future__ import annotations

from typing import Any

import streamlit as st

from slotscope.dashboard import (
    capacity_chart,
    contradictions,
    links,
    palette,
    queries,
    widgets,
    window,
)
from slotscope.dashboard.queries import Axis
from slotscope.dashboard.source import Watch

BINS = 200
EVICTIONS_MAX = 1_000
POOL_SIZE = "engine.max_mamba_cache_size"
"""The note that says how many slots a pool has, its pad slot left out."""


def _size(watch: Watch, process: dict[str, Any], rows: list[dict[str, Any]]) -> tuple[int, bool]:
    """Slots of a pool, and whether the process says so; else as many as were held at once."""
    said = queries.notes(watch, process["process"]).get(POOL_SIZE, "")
    if said.isdecimal():
        return int(said), True
    held: dict[int, int] = {}
    for row in rows:
        if row["state"] != "locked":
            held[row["bin"]] = held.get(row["bin"], 0) + row["slots"]
    return max(held.values(), default=0), False


def _facts(
    rows: list[dict[str, Any]], filled: list[dict[str, Any]], size: int, begun: list[dict[str, Any]]
) -> None:
    peaks: dict[str, int] = {}
    for row in rows:
        peaks[row["state"]] = max(peaks.get(row["state"], 0), row["peak"])
    least = min((row["slots"] for row in filled if row["state"] == "free"), default=size)
    reused, asked = (sum(row[name] for row in begun) for name in ("reused", "asked"))
    with st.container(horizontal=True, gap="medium"):
        widgets.fact("slots in the pool", f"{size:,}")
        widgets.fact("free at least", f"{least:,}")
        for state, peak in sorted(peaks.items()):
            widgets.fact(f"{state} at most", f"{peak:,}")
        if asked:
            widgets.fact("tokens reused", f"{reused:,} of {asked:,} ({reused / asked:.0%})")


def _evictions(watch: Watch, shown: Axis, pool: int) -> None:
    table = queries.evictions(watch, shown, pool=pool, limit=EVICTIONS_MAX)
    if table.num_rows == 0:
        st.caption("No checkpoint was evicted in this window.")
        return
    rows = table.to_pylist()
    with st.container(horizontal=True, key="evictions-count"):
        st.badge(f"{rows[0]['total']:,} evicted", icon=":material/delete:", color="gray")
        if rows[0]["for_spare"]:
            st.badge(
                f"{rows[0]['for_spare']:,} for a spare", icon=palette.ICONS["found"], color="red"
            )
    widgets.still(
        capacity_chart.evictions(shown.unit, shown.low, shown.high, rows), key="evictions",
        alt="Evicted checkpoints over time, by what they made room for",
    )  # fmt: skip
    left = rows[0]["total"] - len(rows)
    st.caption(
        "**Crosses**: a node lost its checkpoint to the allocation that had failed just before. "
        "**Other**: none had: keys and values were short, or the cache was flushed."
        + (f" The latest {len(rows):,} are drawn, {left:,} are not." if left else "")
    )
    with st.expander("Evictions as a table"):
        widgets.events_table(table.drop_columns(["total", "for_spare"]), key="evicted")


def _picture(watch: Watch, process: dict[str, Any], shown: Axis, pool: int) -> None:
    rows = queries.occupancy(watch, shown, pool=pool, bins=BINS).to_pylist()
    size, said = _size(watch, process, rows)
    filled = capacity_chart.filled(rows, size)
    begun = queries.reuse(watch, shown, pool=pool, bins=BINS).to_pylist()
    where = (shown.unit, shown.low, shown.high)
    _facts(rows, filled, size, begun)
    widgets.still(
        capacity_chart.occupancy(*where, BINS, filled), key="occupancy",
        alt="Slots over time by what they are used for",
    )  # fmt: skip
    if not said:
        st.caption(
            "The process does not say how many slots it has: free is what is left of the most "
            "that were held at once."
        )
    widgets.still(
        capacity_chart.begins(*where, BINS, begun), key="begins",
        alt="Requests that began from a checkpoint, and from nothing",
    )  # fmt: skip
    _evictions(watch, shown, pool)
    found = contradictions.placed(watch, shown)
    contradictions.listed(found, lambda row: row["detector"].startswith("P"))


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is None or not process["slots"]:
            widgets.no_events()
            return
        with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
            whole = widgets.axis_of(process, window.unit())
            shown = window.of(whole)
            window.show_all(whole, shown)
        window.strip(watch, whole, shown)
        _picture(watch, process, shown, links.whole("pool") or 0)

    widgets.refreshing(body)
