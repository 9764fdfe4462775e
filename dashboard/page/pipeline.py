"""Pipeline: which stage computes which micro-batch when, and where each verify's result went."""

from __future__ import annotations

from typing import Any

import streamlit as st

from slotscope.dashboard import contradictions, links, pipeline_chart, queries, widgets, window
from slotscope.dashboard.pipeline_chart import WRONG, Stage
from slotscope.dashboard.queries import Axis
from slotscope.dashboard.source import Watch

STAGES_MAX = 16
COMPUTES_MAX = 800
PAIRS_MAX = 400
EVENTS_MAX = 500
TOLD_MAX = 4
BEFORE, AFTER = 8, 12
"""Forwards around the first wrong pair that are shown where the address names no window."""


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Verifies of each pairing."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["pairing"]] = counts.get(row["pairing"], 0) + row["verifies"]
    return counts


def _verdict(counts: dict[str, int]) -> None:
    wrong = sum(counts.get(pairing, 0) for pairing in WRONG)
    right = counts.get("right", 0)
    if wrong:
        st.badge(f"{wrong:,} wrong", icon=":material/error:", color="red")
    if right:
        colour: Any = "gray" if wrong else "green"
        st.badge(f"{right:,} rightly paired", icon=":material/check_circle:", color=colour)
    if counts.get("open"):
        st.badge(f"{counts['open']:,} under way", icon=":material/pending:", color="gray")
    if not counts:
        st.badge("no verify", icon=":material/remove:", color="gray")


def _shown(watch: Watch, whole: Axis, places: list[float]) -> Axis:
    """The window that the address names; else the forwards around the one that it names (`at`),
    around the first wrong pair, or the first ones."""
    if window.named():
        return window.of(whole)
    first = min(places, default=whole.low)
    return queries.vicinity(
        watch, whole, first, forward=links.whole("at"), before=BEFORE, after=AFTER
    )


def _argument(pairs: list[dict[str, Any]], stages: list[Stage]) -> None:
    """The first wrong pairs, each in a sentence."""
    told = [pair for pair in pairs if pair["pairing"] in WRONG]
    if not told:
        return
    with st.container(key="argument-pairs", gap=None):
        for pair in told[:TOLD_MAX]:
            place = stages.index((pair["process"], pair["pool"]))
            st.text(f"Stage {place}: {_sentence(pair)}")
        if len(told) > TOLD_MAX:
            st.caption(f"and {len(told) - TOLD_MAX} more in this window")


def _sentence(pair: dict[str, Any]) -> str:
    of = f"forward {pair['forward']} (micro-batch {pair['micro_batch']})"
    if pair["pairing"] == "missing":
        return f"the result of {of} moved no state. This stage stays behind the tokens sent."
    if pair["pairing"] == "rows":
        return f"the commit of {of} read scratch rows that are not its requests'."
    end = " It was refused." if pair["refused"] else ""
    return (
        f"the result of {of} was applied to the states of forward {pair['commit_forward']} "
        f"(micro-batch {pair['commit_micro_batch']}).{end}"
    )


def _picked() -> None:
    """A forward was clicked: take it and its stage into the address."""
    points = st.session_state["pipeline"].selection.get("forward", [])
    if points:
        links.keep(pool=points[0]["pool"], forward=points[0]["forward"])


def _picture(watch: Watch, whole: Axis, shown: Axis, stages: list[Stage]) -> None:
    pairs = queries.pairs(watch, shown, limit=PAIRS_MAX).to_pylist()
    computes = queries.computes(watch, shown, limit=COMPUTES_MAX).to_pylist()
    found = contradictions.placed(watch, whole)
    forwards = {row["forward"] for row in computes}
    here = [row for row in found if row["forward"] in forwards]
    _argument(pairs, stages)
    st.altair_chart(
        pipeline_chart.pipeline(
            stages, shown.unit, shown.low, shown.high, computes=computes, pairs=pairs,
            red=[((shown.process, row["pool"]), row["forward"]) for row in here],
        ),
        key="pipeline", on_select=_picked, selection_mode="forward",
        alt="Stages as lanes: what each computes, and which commit each result led to",
    )  # fmt: skip
    contradictions.listed(here)
    left = [
        f"{rows[0]['total'] - len(rows):,} {what}"
        for rows, what in ((computes, "forwards"), (pairs, "pairs"))
        if rows and rows[0]["total"] > len(rows)
    ]
    st.caption(
        "**Boxes**: forwards by micro-batch, verifies strong, others pale. **Triangles**: what a "
        "verify accepted, sent by the last stage and received. **Diamonds**: its commit, with a "
        "line up to the verify whose states it moved. **Red**: that is another verify, or there "
        "is no commit; the dashed line leads to the right one."
        + (f" Left out of this window: {', '.join(left)}; zoom in." if left else "")
    )


def _details(watch: Watch, axis: Axis) -> None:
    forward, pool = links.whole("forward"), links.whole("pool") or 0
    if forward is None:
        st.caption("Click a box to read what that stage was told of it.")
        return
    events = queries.computed(watch, axis, forward=forward, pool=pool, limit=EVENTS_MAX)
    st.subheader(f"Forward {forward} on stage {pool}", anchor=False)
    widgets.events_table(events, key="computed")


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        process = widgets.process_of(watch)
        if process is None:
            widgets.no_events()
            return
        whole = widgets.axis_of(process, links.choice("axis", ("time", "order")))
        table = queries.stages(watch, whole, limit=STAGES_MAX)
        stages = [(row["process"], row["pool"]) for row in table.to_pylist()]
        if not stages:
            _teach()
            return
        rows = queries.pairings(watch, whole, bins=window.BINS).to_pylist()
        places = [row["x"] for row in rows if row["pairing"] in WRONG]
        with st.container(horizontal=True, vertical_alignment="bottom", key="controls"):
            window.unit()
            shown = _shown(watch, whole, places)
            window.show_all(whole, shown)
            _verdict(_counts(rows))
        window.strip(watch, whole, shown, wrong=places)
        _picture(watch, whole, shown, stages)
        _details(watch, whole)

    widgets.refreshing(body)


def _teach() -> None:
    widgets.teach(
        "No micro-batches in this trace",
        "A pipeline's forwards name their micro-batch. This process has one stage, or does not "
        "say. To see stages at work, and one of them paired wrongly:",
        "slotscope serve --pp-size 4 --speculative-algorithm NGRAM "
        "--disable-overlap-schedule --without-patch pp-pair-by-microbatch --trace traces/pp",
    )
