"""The pictures of a request: how deep its state gets when, what is saved, what is claimed of it.

On one axis stand the chunks and steps that move the live state (bars, from launch to result), the
depths where a checkpoint may be left (lines), the tracks into its other slots (squares) and the
depths that are claimed for its states (diamonds). A claim that the state contradicts is red.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from . import charts, palette

Rows = list[dict[str, Any]]

HEIGHT = 380  # pixels
ACCEPT_HEIGHT = 150
LINES_MAX = 40  # lines of the grid that can be told apart

KINDS = {"prefill": palette.OWNERS[0], "decode": palette.OWNERS[2], "verify": palette.OWNERS[1],
         "restore": palette.OWNERS[3], "clear": palette.INK}  # fmt: skip
"""Colours of what moves a state."""

INITS = ("clear", "restore")
"""Acts by which a live state begins."""


def moves(steps: Rows) -> Rows:
    """Steps with what they are called: the kind of their forward, or the first init."""
    return [
        row | {"what": row["op"] if row["op"] in INITS else row["kind"] or "decode"}
        for row in steps
    ]


def crossings(steps: Rows, grid: int | None, tracked: set[int]) -> Rows:
    """Steps that pass a depth of the grid: x, depth, and whether a state of it was saved."""
    if not grid:
        return []
    rows = []
    for row in steps:
        if row["op"] in INITS or row["depth"] is None:
            continue
        first = (row["depth_before"] // grid + 1) * grid
        for depth in range(first, row["depth"] + 1, grid):
            rows.append({"x": row["x"], "depth": depth, "saved": depth in tracked})
    return rows


def judged(claims: Rows) -> Rows:
    """Claims with `wrong` and words; acts that claim nothing are left out."""
    return [
        row
        | {
            "wrong": row["state_depth"] is not None and row["state_depth"] != row["label"],
            "text": f"{row['op']}: label {row['label']}, state {row['state_depth']}",
        }
        for row in claims
        if row["claim"]
    ]


def _lines(grid: int | None, low: float, high: float) -> alt.Chart:
    places = range(int(low // grid) * grid, int(high) + grid, grid) if grid else []
    rows = [{"depth": depth} for depth in places if depth > 0] if len(places) <= LINES_MAX else []
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rule(color=palette.INK, opacity=0.35, strokeDash=[2, 3])
        .encode(y="depth:Q")
    )


def _moves(rows: Rows, x: alt.X, y: alt.Y, window: float) -> list[alt.Chart]:
    wide = [row | {"x2": max(row["x2"], row["x"] + window / charts.PIXELS_MAX)} for row in rows]
    present = [kind for kind in KINDS if any(row["what"] == kind for row in rows)]
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=present, range=[KINDS[kind] for kind in present]),
        legend=alt.Legend(title="moves the live state", orient="top", symbolType="stroke"),
    )
    tip = [
        alt.Tooltip("what:N"), alt.Tooltip("forward:Q"), alt.Tooltip("slot:Q"),
        alt.Tooltip("depth_before:Q", title="from depth"), alt.Tooltip("depth:Q", title="to depth"),
        alt.Tooltip("accept_len:Q", title="accepted"), alt.Tooltip("folded:Q", title="steps"),
        alt.Tooltip("x:Q", title="launched", format=".6~f"),
    ]  # fmt: skip
    begins = y.copy()
    begins.shorthand = "depth_before:Q"
    base = alt.Chart(alt.Data(values=wide)).encode(x=x, color=colour, tooltip=tip)
    rise = base.mark_rule(strokeWidth=2).encode(y=begins, y2="depth:Q")
    first = [row for row in rows if row["op"] in INITS]
    base = base.properties(data=alt.Data(values=[row for row in wide if row["op"] not in INITS]))
    flight = base.mark_rule(strokeWidth=4).encode(y=y, x2="x2:Q")
    begun = (
        alt.Chart(alt.Data(values=first))
        .mark_point(shape="triangle-up", size=90, filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, tooltip=tip)
    )
    return [rise, flight, begun]


def _saved(tracks: Rows, passed: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    missed = (
        alt.Chart(alt.Data(values=[row for row in passed if not row["saved"]]))
        .mark_point(size=60, shape="circle", color=palette.INK, strokeWidth=1.4)
        .encode(x=x, y=y, tooltip=[alt.Tooltip("depth:Q", title="passed, not saved")])
    )
    squares = (
        alt.Chart(alt.Data(values=tracks))
        .mark_point(size=85, shape="square", filled=True, opacity=1, color=palette.OWNERS[6])
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("op:N"), alt.Tooltip("role:N"), alt.Tooltip("slot:Q"),
                alt.Tooltip("depth:Q"), alt.Tooltip("grid:Q"), alt.Tooltip("forward:Q"),
            ],
        )
    )  # fmt: skip
    return [missed, squares]


def _claims(rows: Rows, x: alt.X, y: alt.Y, middle: float) -> list[alt.Chart]:
    colour = alt.condition("datum.wrong", alt.value(palette.CONTRADICTION), alt.value(palette.INK))
    labels = y.copy()
    labels.shorthand = "label:Q"
    states = y.copy()
    states.shorthand = "state_depth:Q"
    tip = [
        alt.Tooltip("op:N"), alt.Tooltip("slot:Q"), alt.Tooltip("node:Q"),
        alt.Tooltip("label:Q"), alt.Tooltip("state_depth:Q", title="depth of the state"),
    ]  # fmt: skip
    wrong = alt.Chart(alt.Data(values=[row for row in rows if row["wrong"]])).encode(x=x)
    gap = wrong.mark_rule(color=palette.CONTRADICTION, strokeWidth=2.5).encode(
        y=labels, y2="state_depth:Q"
    )
    truth = wrong.mark_circle(size=90, color=palette.CONTRADICTION, opacity=1).encode(
        y=states, tooltip=tip
    )
    diamond = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(shape="diamond", size=95, filled=True, opacity=1)
        .encode(x=x, y=labels, color=colour, tooltip=tip)
    )
    # One bug is claimed several times on end, and says the same each time: it is written once.
    said = {(row["label"], row["state_depth"]): row for row in rows[::-1] if row["wrong"]}

    def words(told: Rows, side: str, shift: int) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=told))
            .mark_text(align=side, dx=shift, fontSize=11.5, fontWeight=700,
                       color=palette.CONTRADICTION)
            .encode(x=x, y=labels, text="text:N")
        )  # fmt: skip

    return [
        gap, truth, diamond,
        words([row for row in said.values() if row["x"] <= middle], "left", 10),
        words([row for row in said.values() if row["x"] > middle], "right", -10),
    ]  # fmt: skip


def depths(
    unit: str, low: float, high: float, *, steps: Rows, claims: Rows, grid: int | None
) -> alt.LayerChart:
    """Draw what `queries.steps` and `queries.claims` answered; `grid` is that of its tracks."""
    rows, named = moves(steps), judged(claims)
    tracks = [row for row in claims if not row["claim"]]
    passed = crossings(steps, grid, {row["depth"] for row in tracks})
    levels = [row["depth"] for row in rows] + [row["depth_before"] for row in rows]
    levels += [row["label"] for row in named] + [row["depth"] for row in tracks]
    levels += [row["state_depth"] for row in named]
    told = [level for level in levels if level is not None]
    bottom, top = min(told, default=0), max(told, default=1)
    slack = max((top - bottom) * 0.08, 1)
    x = charts.x_axis(unit, low, high)
    y = alt.Y(
        "depth:Q",
        scale=alt.Scale(domain=[bottom - slack, top + slack], nice=False, zero=False),
        axis=alt.Axis(title="depth (tokens)", grid=False, minExtent=charts.MARGIN - 20),
    )
    return alt.layer(
        _lines(grid, bottom, top),
        *_moves(rows, x, y, high - low),
        *_saved(tracks, passed, x, y),
        *_claims(named, x, y, (low + high) / 2),
    ).properties(height=HEIGHT)


def accepts(unit: str, low: float, high: float, steps: Rows) -> alt.Chart:
    """Accept lengths of its verifies, on the same axis. Folded ones show their mean."""
    rows = [row | {"mean": row["accept_len"] / row["folded"]} for row in steps if row["accept_len"]]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=KINDS["verify"], width=5)
        .encode(
            x=charts.x_axis(unit, low, high),
            y=alt.Y(
                "mean:Q",
                scale=alt.Scale(zero=True),
                axis=alt.Axis(
                    title="accepted", tickMinStep=1, tickCount=4, minExtent=charts.MARGIN - 20
                ),
            ),
            tooltip=[
                alt.Tooltip("forward:Q"), alt.Tooltip("accept_len:Q", title="accepted"),
                alt.Tooltip("folded:Q", title="verifies"),
            ],
        )
        .properties(height=ACCEPT_HEIGHT)
    )  # fmt: skip
