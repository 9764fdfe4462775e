"""The picture of a pipeline: stages as lanes, what each computes, and where each result went.

In the upper part of a lane lie the forwards that the stage computes, coloured by micro-batch. In
the lower part stand the results that it had and the commits that it made of them, coloured by the
micro-batch of the result. A line leads from each commit up to the verify whose states it moved.
Where that is not the verify which the result is of, the line, the forward and the words are red.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from . import charts, palette

Rows = list[dict[str, Any]]

LANE = 96  # pixels of height for one stage
FRAME = 80  # pixels for the legends and the axis
TOP, BOTTOM = 0.1, 0.42  # the part of a lane that a forward's box takes
RESULT, COMMIT = 0.64, 0.86  # where in a lane results stand, and commits below them
MARGIN = 0.025  # part of the window that is left free behind its end, for marks that lie there
NAME_WIDTH = 1 / 28  # part of the window that a bar needs to have its name written in it

WRONG = ("wrong", "rows", "missing")
"""Pairings that are red."""

Stage = tuple[int, int]
"""A process and a pool."""


def colour_of(micro_batch: int | None) -> str:
    """The colour of a micro-batch, the same on all stages."""
    return palette.NODE if micro_batch is None else palette.OWNERS[micro_batch % 8]


def words(pair: dict[str, Any]) -> str:
    """What is wrong with a pair, in few words."""
    if pair["pairing"] == "missing":
        return f"forward {pair['forward']}: no commit"
    if pair["pairing"] == "rows":
        return f"forward {pair['forward']}: rows of others"
    end = ", refused" if pair["refused"] else ""
    return (
        f"result of {pair['forward']} (mb {pair['micro_batch']}) → states of "
        f"{pair['commit_forward']} (mb {pair['commit_micro_batch']}){end}"
    )


def _lane_of(stages: Sequence[Stage], row: dict[str, Any], pool: str = "pool") -> int | None:
    stage = (row["process"], row[pool])
    return stages.index(stage) if stage in stages else None


def bars(computes: Rows, stages: Sequence[Stage], red: Iterable[tuple[Stage, int]]) -> Rows:
    """Forwards as boxes of their lanes; those in `red`, (stage, forward), have something wrong."""
    marked = set(red)
    boxes = []
    for row in computes:
        lane = _lane_of(stages, row)
        if lane is None:
            continue
        of = ((row["process"], row["pool"]), row["forward"])
        boxes.append(
            row
            | {
                "y": lane + TOP,
                "y2": lane + BOTTOM,
                "colour": colour_of(row["micro_batch"]),
                "wrong": of in marked,
                "name": f"{row['forward']} {row['kind'] or ''}",
            }
        )
    return boxes


def _end_of(pair: dict[str, Any]) -> float | None:
    """Where a pair is told: at its commit, else where the result came, else where it was read."""
    places = (pair["commit_x"], pair["result_x"], pair["done_x"])
    return next((place for place in places if place is not None), None)


def _ties(pairs: Rows, stages: Sequence[Stage], boxes: Rows, left: float) -> tuple[Rows, Rows]:
    """Lines from commits to the verifies that they moved, and from senders to receivers."""
    middle = {
        (row["process"], row["pool"], row["forward"]): (row["x"] + row["x2"]) / 2 for row in boxes
    }
    moved, sent = [], []
    for pair in pairs:
        lane, end = _lane_of(stages, pair), _end_of(pair)
        if lane is None or end is None:
            continue
        told = {"colour": colour_of(pair["micro_batch"]), "text": words(pair)}
        for forward in {pair["commit_forward"], pair["forward"]} - {None}:
            right = forward == pair["forward"]
            x = middle.get((pair["process"], pair["pool"], forward), left)
            moved.append(told | {
                "x": x, "y": lane + BOTTOM, "x2": end, "y2": lane + COMMIT,
                "wrong": pair["pairing"] in WRONG and (pair["pairing"] != "wrong" or not right),
                "ghost": right and pair["pairing"] in ("wrong", "missing"),
            })  # fmt: skip
        source = (pair["process"], pair["sent_pool"])
        if pair["sent_x"] is not None and source in stages and pair["pool"] != pair["sent_pool"]:
            sent.append(told | {
                "x": pair["sent_x"], "y": stages.index(source) + RESULT,
                "x2": pair["result_x"], "y2": lane + RESULT,
            })  # fmt: skip
    return moved, [row for row in sent if row["x2"] is not None]


def _points(pairs: Rows, stages: Sequence[Stage]) -> Rows:
    """Results that a stage had, and commits: x, y, act, colour, wrong."""
    points = []
    for pair in pairs:
        lane = _lane_of(stages, pair)
        if lane is None:
            continue
        told = pair | {
            "text": words(pair),
            "wrong": pair["pairing"] in WRONG,
            "colour": colour_of(pair["micro_batch"]),
        }
        told["edge"] = palette.CONTRADICTION if told["wrong"] else "white"
        acts = {
            "sent" if pair["pool"] == pair["sent_pool"] else "received": pair["result_x"],
            "commit": pair["commit_x"],
            "no commit": _end_of(pair) if pair["pairing"] == "missing" else None,
        }
        heights = {act: lane + (COMMIT if act.endswith("commit") else RESULT) for act in acts}
        points += [
            told | {"x": x, "act": act, "y": heights[act]}
            for act, x in acts.items()
            if x is not None
        ]
    return points


def _lanes(stages: Sequence[Stage]) -> alt.Y:
    several = len({process for process, _ in stages}) > 1
    names = [f"process {p}, stage {q}" if several else f"stage {q}" for p, q in stages]
    told = ", ".join(f"'{name}'" for name in names)
    return alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[len(stages), 0], nice=False),
        axis=alt.Axis(
            title=None,
            values=[lane + (TOP + BOTTOM) / 2 for lane in range(len(stages))],
            labelExpr=f"[{told}][floor(datum.value)]",
            grid=False,
            ticks=False,
            domain=False,
            minExtent=charts.MARGIN + 17,
        ),
    )


def _forwards(boxes: Rows, x: alt.X, y: alt.Y, window: float) -> list[alt.Chart]:
    batches = sorted({row["micro_batch"] for row in boxes if row["micro_batch"] is not None})
    colour = alt.Color(
        "micro_batch:O",
        scale=alt.Scale(domain=batches, range=[colour_of(batch) for batch in batches]),
        legend=alt.Legend(title="micro-batch", orient="top", symbolType="square"),
    )
    base = alt.Chart(alt.Data(values=boxes)).encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    pick = alt.selection_point(name="forward", fields=["pool", "forward"], on="click")
    box = base.mark_rect(cornerRadius=3, cursor="pointer").encode(
        color=colour,
        opacity=alt.condition("datum.kind === 'verify'", alt.value(0.95), alt.value(0.55)),
        tooltip=[
            alt.Tooltip("forward:Q"), alt.Tooltip("kind:N"),
            alt.Tooltip("micro_batch:O", title="micro-batch"), alt.Tooltip("requests:Q"),
            alt.Tooltip("pool:O", title="stage"), alt.Tooltip("x:Q", title="from", format=".6~f"),
        ],
    ).add_params(pick)  # fmt: skip
    outline = (
        alt.Chart(alt.Data(values=[row for row in boxes if row["wrong"]]))
        .mark_rect(filled=False, stroke=palette.CONTRADICTION, strokeWidth=3, cornerRadius=3)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )
    roomy = [row for row in boxes if row["x2"] - row["x"] > window * NAME_WIDTH]
    name = (
        alt.Chart(alt.Data(values=roomy))
        .mark_text(align="left", baseline="top", dx=5, dy=5, fontSize=10.5, fontWeight=600,
                   color={"expr": "datum.kind === 'verify' ? 'white' : '#222831'"}, limit=64)
        .encode(x=x, y=y, text="name:N")
    )  # fmt: skip
    return [box, outline, name]


def _lines(moved: Rows, sent: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    def layer(rows: Rows, **mark: Any) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_rule(**mark)
            .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
        )

    ghosts = [row for row in moved if row["ghost"]]
    drawn = [row for row in moved if not row["ghost"]]
    return [
        layer(sent, color=palette.INK, strokeWidth=1, opacity=0.55),
        layer(ghosts, color=palette.INK, strokeWidth=1.5, strokeDash=[3, 3]),
        layer([row for row in drawn if not row["wrong"]], color={"expr": "datum.colour"},
              strokeWidth=1.6),
        layer([row for row in drawn if row["wrong"]], color=palette.CONTRADICTION, strokeWidth=3),
    ]  # fmt: skip


def _marks(points: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    shapes = {"sent": "triangle-up", "received": "triangle-down", "commit": "diamond",
              "no commit": "cross"}  # fmt: skip
    base = alt.Chart(alt.Data(values=points)).encode(
        x=x,
        y=y,
        shape=alt.Shape(
            "act:N",
            scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
            legend=alt.Legend(title="result", orient="top", symbolFillColor=palette.INK),
        ),
        fill=alt.Fill("colour:N", scale=None),
        stroke=alt.Stroke("edge:N", scale=None),
        tooltip=[
            alt.Tooltip("act:N"), alt.Tooltip("pairing:N"), alt.Tooltip("text:N", title="pair"),
            alt.Tooltip("forward:Q", title="result of forward"),
            alt.Tooltip("micro_batch:O", title="its micro-batch"),
            alt.Tooltip("commit_forward:Q", title="states of forward"),
            alt.Tooltip("commit_micro_batch:O", title="their micro-batch"),
        ],
    )  # fmt: skip
    return base.mark_point(size=80, opacity=1, strokeWidth=1.4)


def _spoken(points: Rows, x: alt.X, y: alt.Y, middle: float) -> list[alt.Chart]:
    """What is wrong with the first pair of each stage, beside its mark, where there is room."""
    first: dict[float, dict[str, Any]] = {}
    for row in sorted(points, key=lambda row: float(row["x"])):
        if row["wrong"] and row["act"] in ("commit", "no commit"):
            first.setdefault(row["y"], row)

    def layer(rows: Rows, side: str, shift: int) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=rows))
            .mark_text(align=side, dx=shift, dy=9, fontSize=11.5, fontWeight=700,
                       color=palette.CONTRADICTION)
            .encode(x=x, y=y, text="text:N")
        )  # fmt: skip

    return [
        layer([row for row in first.values() if row["x"] <= middle], "left", 10),
        layer([row for row in first.values() if row["x"] > middle], "right", -10),
    ]


def pipeline(
    stages: Sequence[Stage],
    unit: str,
    low: float,
    high: float,
    *,
    computes: Rows,
    pairs: Rows,
    red: Iterable[tuple[Stage, int]] = (),
) -> alt.LayerChart:
    """Draw what `queries.computes` and `queries.pairs` answered.

    A click on a forward selects (`forward` parameter) its pool and number. `red` names forwards of
    stages that a detector found something about.
    """
    wrong = {((p["process"], p["pool"]), p["forward"]) for p in pairs if p["pairing"] in WRONG}
    wrong |= {
        ((p["process"], p["pool"]), p["commit_forward"]) for p in pairs if p["pairing"] == "wrong"
    }
    boxes = bars(computes, stages, wrong | set(red))
    told = [pair for pair in pairs if low <= (_end_of(pair) or low) <= high]
    moved, sent = _ties(told, stages, boxes, low)
    points = _points(told, stages)
    x = charts.x_axis(unit, low, high + (high - low) * MARGIN)
    y = _lanes(stages)
    between = [{"y": lane} for lane in range(1, len(stages))]
    border = (
        alt.Chart(alt.Data(values=between)).mark_rule(color=palette.INK, opacity=0.3).encode(y=y)
    )
    return alt.layer(
        border,
        *_lines(moved, sent, x, y),
        *_forwards(boxes, x, y, high - low),
        _marks(points, x, y),
        *_spoken(points, x, y, (low + high) / 2),
    ).properties(height=len(stages) * LANE + FRAME)
