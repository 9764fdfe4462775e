"""The life lines of slots: who holds each slot when, what is being written, what contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from . import palette

Rows = list[dict[str, Any]]

LANE = 30  # pixels of height for one slot
FRAME = 118  # pixels above and below the lanes: legends, axis, its title
MARGIN = 52  # pixels left of the lanes, so that the strip above lies on the same columns
TREE = "tree"
WRITE_OFFSET = 10  # pixels below the middle of a lane, where its writes in flight are drawn

PIXELS_MAX = 600  # parts of the window that a bar can't be narrower than
CROWD = 150  # marks of a layer beyond which they are drawn smaller and plainer
OWNERS_MAX = 9  # owners that a legend can tell apart; beyond, the tooltips do

TITLES = {"time": "seconds since the trace began", "order": "position in the process's order"}


def lane_name(row: dict[str, Any]) -> str:
    """What the axis calls a slot: its number; in a second pool, the pool's number before it."""
    return f"{row['slot']}" if not row.get("pool") else f"{row['pool']}:{row['slot']}"


def _named(rows: Rows) -> Rows:
    """Rows with the lane they belong to and the owner that colours them."""
    return [row | {"lane": lane_name(row), "owner": row.get("request_id") or TREE} for row in rows]


def _visible(rows: Rows, window: float) -> Rows:
    """Bars wide enough to be seen; the next bar of a lane covers what is too much."""
    return [row | {"x2": max(row["x2"], row["x"] + window / PIXELS_MAX)} for row in rows]


def _owner_scale(*layers: Rows) -> tuple[alt.Scale, alt.Legend | None]:
    """Colours by owner: requests by their number, the tree grey; the legend while it's short."""
    colours = {TREE: palette.NODE}
    for row in (row for layer in layers for row in layer):
        if row.get("request_id"):
            colours[row["request_id"]] = palette.owner(row["request"])
    names = [name for name in colours if name != TREE] + [TREE]
    legend = alt.Legend(
        title="owner", orient="top", symbolType="square", labelLimit=180, columns=9, offset=4
    )
    scale = alt.Scale(domain=names, range=[colours[name] for name in names])
    return scale, legend if len(names) <= OWNERS_MAX else None


def _lane(lanes: Sequence[str]) -> alt.Y:
    return alt.Y(
        "lane:O",
        sort=list(lanes),
        scale=alt.Scale(domain=list(lanes), paddingInner=0.1),
        axis=alt.Axis(
            title="slot",
            grid=True,
            gridOpacity=0.25,
            ticks=False,
            domain=False,
            labelOverlap=False,
            minExtent=MARGIN - 20,
            maxExtent=MARGIN - 20,
        ),  # fmt: skip
    )


def x_axis(unit: str, low: float, high: float) -> alt.X:
    """The horizontal axis of a window; all layers read it from a column `x`."""
    return alt.X(
        "x:Q",
        scale=alt.Scale(domain=[low, high], nice=False, clamp=True, padding=0),
        axis=alt.Axis(title=TITLES[unit], grid=False, tickCount=8),
    )


def _held(rows: Rows, x: alt.X, y: alt.Y, colour: alt.Color, pick: alt.Parameter) -> alt.Chart:
    size = alt.Size(
        "role:O",
        sort=list(palette.THICKNESS),
        scale=alt.Scale(
            domain=list(palette.THICKNESS), range=list(palette.THICKNESS.values()), type="ordinal"
        ),
        legend=None,
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(cornerRadius=2, cursor="pointer")
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            color=colour,
            size=size,
            opacity=alt.condition("datum.role === 'node'", alt.value(0.55), alt.value(0.95)),
            tooltip=[
                alt.Tooltip("slot:Q"),
                alt.Tooltip("generation:Q"),
                alt.Tooltip("role:N"),
                alt.Tooltip("request_id:N", title="request"),
                alt.Tooltip("node:Q"),
                alt.Tooltip("x:Q", title="from", format=".6~f"),
                alt.Tooltip("x2:Q", title="until", format=".6~f"),
                alt.Tooltip("held:N", title="still held"),
                alt.Tooltip("folded:Q", title="stretches"),
            ],
        )
        .add_params(pick)
    )


def _names(rows: Rows, x: alt.X, y: alt.Y, window: float) -> alt.Chart:
    """The owner's name in bars that have room for it."""
    roomy = [
        row
        for row in rows
        if row["request_id"] and row["role"] == "live" and row["x2"] - row["x"] > window / 10
    ]
    return (
        alt.Chart(alt.Data(values=roomy))
        .mark_text(align="left", dx=6, limit=100, fontSize=10.5, color="white")
        .encode(x=x, y=y, text="owner:N")
    )


def _flights(rows: Rows, x: alt.X, y: alt.Y, scale: alt.Scale) -> alt.Chart:
    """Dashed outlines; thin lines where there are so many that dashes would be noise."""
    owner: dict[str, Any] = {"shorthand": "owner:N", "scale": scale, "legend": None}
    if len(rows) > CROWD:
        bar: dict[str, Any] = {"height": 2.5, "opacity": 0.8}
        colour: dict[str, Any] = {"color": alt.Color(**owner)}
    else:
        bar = {"height": 4, "filled": False, "strokeWidth": 1.2, "strokeDash": [3, 1.5]}
        colour = {"stroke": alt.Stroke(**owner)}
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(yOffset=WRITE_OFFSET, **bar)
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            **colour,
            tooltip=[
                alt.Tooltip("slot:Q"),
                alt.Tooltip("forward:Q"),
                alt.Tooltip("kind:N"),
                alt.Tooltip("ops:N", title="writes"),
                alt.Tooltip("depth:Q", title="depth after"),
                alt.Tooltip("request_id:N", title="request"),
                alt.Tooltip("x:Q", title="launched", format=".6~f"),
                alt.Tooltip("x2:Q", title="result", format=".6~f"),
                alt.Tooltip("open:N", title="under way"),
                alt.Tooltip("folded:Q", title="forwards"),
            ],
        )
    )


def _marks(rows: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    shape = alt.Shape(
        "op:N",
        scale=alt.Scale(domain=list(palette.SHAPES), range=list(palette.SHAPES.values())),
        legend=alt.Legend(
            title="act",
            orient="top",
            offset=4,
        ),
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(
            size=52 if len(rows) <= CROWD else 20,
            filled=True,
            fill="white",
            stroke="#333b48",
            strokeWidth=1.3,
            opacity=1,
        )
        .encode(
            x=x,
            y=y,
            shape=shape,
            tooltip=[
                alt.Tooltip("op:N"),
                alt.Tooltip("slot:Q"),
                alt.Tooltip("src_slot:Q", title="from slot"),
                alt.Tooltip("label:Q"),
                alt.Tooltip("depth:Q"),
                alt.Tooltip("node:Q"),
                alt.Tooltip("request_id:N", title="request"),
                alt.Tooltip("outcome:N"),
                alt.Tooltip("folded:Q", title="acts"),
            ],
        )
    )


def _contradictions(rows: Rows, x: alt.X, y: alt.Y) -> alt.LayerChart:
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("detector:N"),
            alt.Tooltip("slot:Q"),
            alt.Tooltip("because:N"),
        ],
    )
    line = base.mark_tick(color=palette.CONTRADICTION, thickness=2.5, size=LANE - 2)
    head = base.mark_point(
        color=palette.CONTRADICTION, filled=True, shape="triangle-down", size=90, yOffset=-13,
        opacity=1,
    )  # fmt: skip
    return line + head


def life_lines(
    lanes: Sequence[str],
    unit: str,
    low: float,
    high: float,
    *,
    ownership: Rows,
    writes: Rows,
    marks: Rows,
    contradictions: Rows,
) -> alt.LayerChart:
    """Slots as `lanes`, named as by `lane_name`.

    Bars: owner and role; outlines below them: writes in flight; red: contradictions.

    A click on a bar selects (`slot` parameter) its pool and slot.
    """
    held = _visible(_named(ownership), high - low)
    flights = _visible(_named(writes), high - low)
    acts = _named(marks)
    x, y = x_axis(unit, low, high), _lane(lanes)
    scale, legend = _owner_scale(held, flights)
    colour = alt.Color("owner:N", scale=scale, legend=legend)
    pick = alt.selection_point(name="slot", fields=["pool", "slot"], on="click")
    layers = [
        _held(held, x, y, colour, pick),
        _names(held, x, y, high - low),
        _flights(flights, x, y, scale),
        _marks(acts, x, y),
    ]
    if contradictions:
        layers.append(_contradictions(_named(contradictions), x, y))
    return alt.layer(*layers).properties(height=len(lanes) * LANE + FRAME)


def strip(
    bins: Rows,
    unit: str,
    low: float,
    high: float,
    count: int,
    window: tuple[float, float],
    wrong: Sequence[float] = (),
) -> alt.LayerChart:
    """Acts over the whole axis, the drawn window shaded, and red where something is `wrong`.
    Dragging selects (`zoom`) another window."""
    width = (high - low) / count
    values = [
        {"x": low + row["bin"] * width, "x2": low + (row["bin"] + 1) * width, "acts": row["acts"]}
        for row in bins
    ]
    x = alt.X("x:Q", scale=alt.Scale(domain=[low, high], nice=False), axis=None)
    blank = alt.Axis(
        title=None, labels=False, ticks=False, domain=False, grid=False, minExtent=MARGIN + 17
    )
    y = alt.Y("acts:Q", axis=blank)
    bars = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(color=palette.INK, opacity=0.75)
        .encode(x=x, x2="x2:Q", y=y, y2=alt.datum(0), tooltip=["acts:Q"])
        .add_params(alt.selection_interval(name="zoom", encodings=["x"]))
    )
    shade = (
        alt.Chart(alt.Data(values=[{"x": window[0], "x2": window[1]}]))
        .mark_rect(color=palette.OWNERS[0], opacity=0.14)
        .encode(x=x, x2="x2:Q")
    )
    ticks = (
        alt.Chart(alt.Data(values=[{"x": place} for place in wrong]))
        .mark_rule(color=palette.CONTRADICTION, strokeWidth=2)
        .encode(x=x)
    )
    return alt.layer(shade, bars, ticks).properties(height=54)
