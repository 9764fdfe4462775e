"""The picture of a finding: one slot's life around its witness, turn by turn.

From top to bottom: who holds the slot, which writes are in flight, and the depth that the state has
(line) against the depths that were claimed for it (diamonds). What contradicts is red.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from . import palette

Rows = list[dict[str, Any]]

HEIGHT = 340  # pixels of the whole picture, its axis included
OWNER_Y = 12  # middle of the bar of the owner
FLIGHT_Y = 36  # middle of the first outline in flight; each flight that overlaps goes one lower
FLIGHT_STEP = 17
DEPTH_PADDING = 26  # pixels between the lowest flight and the highest depth
CLAIMS = ("donate", "insert", "match", "restore", "load_back", "swap")


def owners(rows: Rows, slot: int) -> Rows:
    """Stretches of one owner, from turn to turn: x, x2, name, colour."""
    stretches: Rows = []
    for row in rows:
        if row["slot"] != slot or row["outcome"] in ("suppressed", "failed", "exists"):
            continue
        if row["op"] in ("donate", "insert"):
            owner, colour = f"tree node {row['node']}", palette.NODE
        elif row["op"] == "free":
            owner, colour = "", ""
        elif row["op"] == "allocate" or (not stretches and row["request_id"]):
            owner, colour = row["request_id"] or "unknown", palette.owner(row["request"])
        else:
            continue
        if stretches and stretches[-1]["name"] == owner:
            continue
        if stretches:
            stretches[-1]["x2"] = row["turn"]
        stretches.append({"x": row["turn"], "x2": rows[-1]["turn"] + 0.5, "name": owner,
                          "colour": colour})  # fmt: skip
    return [stretch for stretch in stretches if stretch["name"]]


def flights(rows: Rows) -> Rows:
    """Forwards from launch to result, each on the first free line: x, x2, name, y."""
    drawn: Rows = []
    free_from: list[float] = []
    for row in rows:
        if row["op"] != "forward.launch":
            continue
        done = next(
            (
                r["turn"]
                for r in rows
                if r["op"] == "forward.done" and r["forward"] == row["forward"]
            ),
            rows[-1]["turn"] + 0.5,
        )
        line = next((i for i, end in enumerate(free_from) if end <= row["turn"]), len(free_from))
        free_from[line : line + 1] = [done]
        drawn.append(
            {
                "x": row["turn"],
                "x2": done,
                "name": f"forward {row['forward']} · {row['kind'] or 'unknown kind'}",
                "y": FLIGHT_Y + line * FLIGHT_STEP,
            }
        )
    return drawn


def claims(rows: Rows) -> Rows:
    """Where somebody names a depth for the state: x, label, depth, wrong, text."""
    return [
        {
            "x": row["turn"],
            "label": row["label"],
            "depth": row["state_depth"],
            "wrong": row["state_depth"] is not None and row["state_depth"] != row["label"],
            "text": f"{row['op']} {row['label']}",
        }
        for row in rows
        if row["op"] in CLAIMS and row["label"] is not None and row["outcome"] != "suppressed"
    ]


def turn_name(row: dict[str, Any]) -> str:
    """What the axis writes under a turn: the operation, and the forward where it is one's."""
    op = str(row["op"]).removeprefix("forward.")
    return f"{op} {row['forward']}" if op in ("launch", "done") else op


def _x(rows: Rows, *, axis: bool) -> alt.X:
    names = ", ".join(f"'{turn_name(row)}'" for row in rows)
    return alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0.6, len(rows) + 0.5], nice=False),
        axis=alt.Axis(
            title=None,
            values=[row["turn"] for row in rows],
            labelExpr=f"[{names}][datum.value - 1]",
            labelAngle=-35,
            labelOverlap=False,
            grid=True,
            gridOpacity=0.25,
            ticks=False,
        )
        if axis
        else None,
    )


def _witness(rows: Rows) -> alt.Chart:
    spans = [{"x": r["turn"] - 0.4, "x2": r["turn"] + 0.4} for r in rows if r["witness"]]
    return (
        alt.Chart(alt.Data(values=spans))
        .mark_rect(color=palette.CONTRADICTION, opacity=0.1)
        .encode(x=_x(rows, axis=True), x2="x2:Q")
    )


def _owner_layers(rows: Rows, slot: int) -> list[alt.Chart]:
    base = alt.Chart(alt.Data(values=owners(rows, slot))).encode(
        x=_x(rows, axis=True), y=alt.value(OWNER_Y)
    )
    bar = base.mark_bar(height=18, cornerRadius=3, opacity=0.95).encode(
        x2="x2:Q", color=alt.Color("colour:N", scale=None)
    )
    name = base.mark_text(align="left", dx=7, color="white", fontWeight=600, fontSize=11, limit=260)
    return [bar, name.encode(text="name:N")]


def _flight_layers(rows: Rows, drawn: Rows) -> list[alt.Chart]:
    base = alt.Chart(alt.Data(values=drawn)).encode(
        x=_x(rows, axis=True), y=alt.Y("y:Q", scale=None, axis=None)
    )
    outline = base.mark_bar(
        height=14, filled=False, stroke=palette.INK, strokeWidth=1.2, strokeDash=[4, 2],
        cornerRadius=3,
    )  # fmt: skip
    name = base.mark_text(align="left", dx=6, color=palette.INK, fontSize=10.5, limit=170)
    return [outline.encode(x2="x2:Q"), name.encode(text="name:N")]


def _depth_layers(rows: Rows, top: float) -> list[alt.Chart]:
    path = [
        {"x": r["turn"], "depth": r["state_depth"]} for r in rows if r["state_depth"] is not None
    ]
    steps = [p for i, p in enumerate(path) if i == 0 or p["depth"] != path[i - 1]["depth"]]
    claimed = claims(rows)
    levels = [p["depth"] for p in path] + [c["label"] for c in claimed]
    low, high = (min(levels), max(levels)) if levels else (0, 1)
    slack = max((high - low) * 0.15, 1)
    scale = alt.Scale(
        domain=[low - slack, high + slack],
        range=[alt.ExprRef("height"), top],
        nice=False,
        zero=False,
    )
    axis = alt.Axis(title="depth (tokens)", values=sorted(set(levels)), grid=True, gridOpacity=0.25)
    x, y = _x(rows, axis=True), alt.Y("depth:Q", scale=scale, axis=axis)

    line = (
        alt.Chart(alt.Data(values=path))
        .mark_line(interpolate="step-after", strokeWidth=2.5, color=palette.OWNERS[0])
        .encode(x=x, y=y)
    )
    numbers = (
        alt.Chart(alt.Data(values=steps))
        .mark_text(align="left", dx=5, dy=-9, fontWeight=600, color=palette.OWNERS[0])
        .encode(x=x, y=y, text="depth:Q")
    )
    gaps = (
        alt.Chart(alt.Data(values=[c for c in claimed if c["wrong"]]))
        .mark_rule(color=palette.CONTRADICTION, strokeWidth=2, strokeDash=[2, 2])
        .encode(x=x, y=y, y2="label:Q")
    )
    colour = alt.condition(
        "datum.wrong", alt.value(palette.CONTRADICTION), alt.value(palette.OWNERS[0])
    )
    base = alt.Chart(alt.Data(values=claimed)).encode(
        x=x, y=alt.Y("label:Q", scale=scale, axis=axis), color=colour
    )
    diamonds = base.mark_point(shape="diamond", size=90, filled=True, opacity=1)
    names = base.mark_text(align="left", dx=9, dy=11, fontSize=11, fontWeight=600)
    return [line, numbers, gaps, diamonds, names.encode(text="text:N")]


def picture(rows: Rows, slot: int) -> alt.LayerChart:
    """Draw the rows that `queries.around` answered about `slot`."""
    drawn = flights(rows)
    lowest = max((flight["y"] for flight in drawn), default=OWNER_Y)
    depth = alt.layer(*_depth_layers(rows, lowest + DEPTH_PADDING))
    upper = alt.layer(*_owner_layers(rows, slot), *_flight_layers(rows, drawn))
    return (
        alt.layer(_witness(rows), depth, upper)
        .resolve_scale(y="independent")
        .properties(height=HEIGHT)
    )
