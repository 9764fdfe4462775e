"""The pictures of capacity: what slots are used for over time, how requests begin, what is lost."""

from __future__ import annotations

from typing import Any

import altair as alt

from . import charts, palette

Rows = list[dict[str, Any]]

HEIGHT = 320
LOW_HEIGHT = 190  # legend and axis take half of it

STATES = {
    "live": palette.OWNERS[0],
    "keep": palette.OWNERS[2],
    "spare": palette.OWNERS[1],
    "scratch": palette.OWNERS[7],
    "cached, locked": "#6f7a88",
    "cached": palette.NODE,
    "free": "#d5d9df",
}
"""What a slot may be, from the bottom of the picture to its top, with its colour."""

EXTENT = {"minExtent": charts.MARGIN - 20, "maxExtent": charts.MARGIN - 20}
"""The charts stand below one another on the same axis."""

PURPOSES = ("live", "keep", "spare", "other")


def filled(rows: Rows, size: int) -> Rows:
    """Rows of `queries.occupancy`, with the cached ones split by whether they are locked, and with
    what is left of `size` slots as free."""
    parts: dict[int, dict[str, int]] = {}
    for row in rows:
        parts.setdefault(row["bin"], {})[row["state"]] = row["slots"]
    told = []
    for part, slots in parts.items():
        cached = slots.pop("cached", 0)
        locked = min(slots.pop("locked", 0), cached)
        slots |= {"cached, locked": locked, "cached": cached - locked}
        slots["free"] = max(size - sum(slots.values()), 0)
        told += [{"bin": part, "state": each, "slots": slots.get(each, 0)} for each in STATES]
    return told


def _stacked(rows: Rows, what: str) -> Rows:
    """Rows of each part on one another, in their order: y, y2. Empty ones are left out."""
    tops: dict[int, int] = {}
    stacked = []
    for row in rows:
        below = tops.get(row["bin"], 0)
        tops[row["bin"]] = below + row[what]
        if row[what]:
            stacked.append(row | {"y": below, "y2": tops[row["bin"]]})
    return stacked


def _placed(rows: Rows, low: float, high: float, bins: int) -> Rows:
    width = (high - low) / bins
    return [
        row | {"x": low + row["bin"] * width, "x2": low + (row["bin"] + 1) * width} for row in rows
    ]


def _count(title: str, top: int) -> alt.Y:
    axis = alt.Axis(title=title, tickMinStep=1, tickCount=5, format="d", **EXTENT)
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=[0, max(top, 1)]))


def occupancy(unit: str, low: float, high: float, bins: int, rows: Rows) -> alt.Chart:
    """Draw what `filled` answered, one column for each part of the axis."""
    stacked = _stacked(rows, "slots")
    top = max((row["y2"] for row in stacked), default=1)
    present = [s for s in STATES if any(r["state"] == s and r["slots"] for r in rows)]
    return (
        alt.Chart(alt.Data(values=_placed(stacked, low, high, bins)))
        .mark_rect()
        .encode(
            x=charts.x_axis(unit, low, high),
            x2="x2:Q",
            y=_count("slots", top),
            y2="y2:Q",
            color=alt.Color(
                "state:N",
                sort=list(STATES),
                scale=alt.Scale(domain=present, range=[STATES[state] for state in present]),
                legend=alt.Legend(title="slots", orient="top", symbolType="square"),
            ),
            tooltip=[
                alt.Tooltip("state:N"),
                alt.Tooltip("slots:Q"),
                alt.Tooltip("x:Q", title="at", format=".6~f"),
            ],
        )
        .properties(height=HEIGHT)
    )


def begins(unit: str, low: float, high: float, bins: int, rows: Rows) -> alt.Chart:
    """How requests began: from a checkpoint or from nothing."""
    told = [
        {"bin": row["bin"], "how": how, "requests": row[column], "reused": row["reused"]}
        for row in rows
        for how, column in (("from a checkpoint", "restored"), ("from nothing", "cleared"))
        if row[column]
    ]
    stacked = _stacked(told, "requests")
    top = max((row["y2"] for row in stacked), default=1)
    return (
        alt.Chart(alt.Data(values=_placed(stacked, low, high, bins)))
        .mark_rect()
        .encode(
            x=charts.x_axis(unit, low, high),
            x2="x2:Q",
            y=_count("requests", top),
            y2="y2:Q",
            color=alt.Color(
                "how:N",
                scale=alt.Scale(
                    domain=["from a checkpoint", "from nothing"],
                    range=[palette.OWNERS[6], palette.NODE],
                ),
                legend=alt.Legend(title="requests begin", orient="top", symbolType="square"),
            ),
            tooltip=[alt.Tooltip("how:N"), "requests:Q", alt.Tooltip("reused:Q", title="tokens")],
        )
        .properties(height=LOW_HEIGHT)
    )


def evictions(unit: str, low: float, high: float, rows: Rows) -> alt.Chart:
    """Checkpoints that were lost, by what for; those lost for a spare are red, as it is of use for
    one crossing only."""
    told = [row | {"purpose": row["purpose"] or "other"} for row in rows]
    y = alt.Y(
        "purpose:N",
        scale=alt.Scale(domain=list(PURPOSES)),
        axis=alt.Axis(title="evicted for", ticks=False, labelOverlap=False, **EXTENT),
    )
    colour = alt.condition(
        "datum.purpose === 'spare'", alt.value(palette.CONTRADICTION), alt.value(palette.INK)
    )
    return (
        alt.Chart(alt.Data(values=told))
        .mark_point(shape="cross", size=70, filled=True, opacity=0.9)
        .encode(
            x=charts.x_axis(unit, low, high),
            y=y,
            color=colour,
            tooltip=[
                alt.Tooltip("purpose:N", title="for"),
                alt.Tooltip("for_request:N", title="of request"),
                alt.Tooltip("node:Q"),
                alt.Tooltip("label:Q", title="its depth"),
                alt.Tooltip("slot:Q"),
            ],
        )
        .properties(height=LOW_HEIGHT)
    )
