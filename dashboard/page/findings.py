"""Findings: the verdict of each detector, and the argument of each contradiction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from slotscope.dashboard import contradictions, links, palette, picture, queries, widgets
from slotscope.dashboard.queries import Axis
from slotscope.dashboard.source import Watch
from slotscope.instrument.findings import Finding, Verdict

TILES = 5
"""Tiles in a row of the verdict board."""

CONSEQUENCES_MAX = 20
"""Consequences that are told in full under their cause."""

MARGIN = 0.15
"""Part of a finding's span that the link to the life lines shows on either side of it."""


def _board(verdicts: Sequence[Verdict]) -> None:
    """One tile per detector: what it found, or why it can't say."""
    for start in range(0, len(verdicts), TILES):
        for place, verdict in zip(st.columns(TILES), verdicts[start : start + TILES], strict=False):
            with place, st.container(border=True, key=f"tile-{verdict.verdict}-{verdict.detector}"):
                st.markdown(f"**{verdict.detector}** {verdict.name}", help=verdict.invariant)
                st.badge(
                    verdict.verdict,
                    icon=palette.ICONS[verdict.verdict],
                    color=palette.VERDICTS[verdict.verdict],
                )
                st.caption(verdict.why)


def _summary(findings: Sequence[Finding]) -> str:
    """How many contradictions, by detector, in one line of Markdown."""
    counts = Counter(f"{finding.detector} {finding.name}" for finding in findings)
    told = ", ".join(f"{name} × {count}" for name, count in counts.most_common())
    folded = sum(len(finding.also) for finding in findings)
    under = "it" if len(findings) == 1 else "them"
    tail = f", and {_count(folded, 'consequence')} folded under {under}" if folded else ""
    return f"### {_count(len(findings), 'contradiction')}: {told}{tail}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _nothing_found(verdicts: Sequence[Verdict]) -> None:
    blind = [verdict.detector for verdict in verdicts if verdict.verdict == "blind"]
    if blind:
        widgets.teach(
            "Nothing was found by the detectors that could see",
            f"{', '.join(blind)} could not look, and blind is not clean: their tiles say which "
            "events are missing. `slotscope doctor` lists the hooks that are dead.",
        )
    else:
        widgets.teach(
            "Every detector looked, and found nothing",
            "To see one at work, bring an upstream bug back: `slotscope demo` serves a small "
            "model with one fix switched off.",
        )


def _ranked(findings: Sequence[Finding], chosen: int) -> None:
    """All findings, causes first, with the number of their consequences; a click selects one."""
    keys = [contradictions.key(finding) for finding in findings]

    def select() -> None:
        rows = st.session_state["ranked"].selection.rows
        links.keep(finding=keys[rows[0]] if rows else None)

    rows = [
        {
            "detector": f.detector,
            "slot": f.slot,
            "lease": f.generation,
            "request": f.request_id,
            "forward": f.forward,
            "consequences": len(f.also),
            "argument": f.because,
        }
        for f in findings
    ]
    st.dataframe(
        rows, hide_index=True, key="ranked", on_select=select, selection_mode="single-row",
        selection_default={"selection": {"rows": [chosen]}}, placeholder="",
        height=min(38 + 36 * len(rows), 260),
        column_config={"argument": st.column_config.TextColumn(width="large")},
    )  # fmt: skip


def _picture(watch: Watch, finding: Finding, axis: Axis) -> None:
    if finding.slot is None or finding.pool is None:
        return
    rows = queries.around(
        watch, axis, pool=finding.pool, slot=finding.slot, events=tuple(finding.witness)
    ).to_pylist()
    if not rows:
        return
    with st.container(key="picture"):
        st.altair_chart(picture.picture(rows, finding.slot), alt=finding.because)
    st.caption(
        f"Slot {finding.slot}, turn by turn. **Bar**: its owner. **Dashed**: writes in flight. "
        "**Line**: the depth that the state has. **Diamonds**: the depth claimed for it. "
        "**Red**: the witness, and a claim that the state contradicts."
    )


def _links(watch: Watch, finding: Finding, axis: Axis, table: pa.Table) -> None:
    """To the pictures of what the finding is about, and to the SQL that shows it again."""
    places = [x for x in table["x"].to_pylist() if x is not None]
    low, high = (min(places), max(places)) if places else (axis.low, axis.high)
    margin = max((high - low) * MARGIN, (axis.high - axis.low) * 0.01)
    around = {"from": low - margin, "until": high + margin}
    with st.container(horizontal=True):
        if finding.slot is not None:
            links.go(
                "slots", f"Slot {finding.slot} on the life lines",
                icon=":material/view_timeline:", slot=finding.slot, pool=finding.pool, **around,
            )  # fmt: skip
        if finding.forward is not None and queries.stages(watch, axis, limit=1).num_rows:
            links.go(
                "pipeline", f"Forward {finding.forward} in the pipeline",
                icon=":material/stacked_bar_chart:", at=finding.forward, forward=finding.forward,
                pool=finding.pool,
            )  # fmt: skip
        if finding.severity == "capacity":
            links.go("capacity", "Capacity there", icon=":material/bar_chart:", **around)
        nodes = [node for node in table["node"].to_pylist() if node is not None]
        if nodes:
            links.go(
                "tree", f"Node {nodes[-1]} in the tree", icon=":material/account_tree:",
                node=nodes[-1],
            )  # fmt: skip
        if finding.request_id is not None:
            links.go(
                "request", "Its request", icon=":material/timeline:", request=finding.request_id
            )
        links.go("sql", "The witness in SQL", icon=":material/database:", q=finding.sql)


def _detail(watch: Watch, finding: Finding) -> None:
    """One finding: the argument, the picture, the witness, what follows from it, the issue."""
    process = next(
        row for row in queries.processes(watch).to_pylist() if row["process"] == finding.process
    )
    axis = widgets.axis_of(process, "time")
    table = queries.witness(watch, axis, tuple(finding.witness))
    where = f"slot {finding.slot}" if finding.slot is not None else f"forward {finding.forward}"
    st.subheader(f"{finding.detector} {finding.name}: {where}", anchor=False)
    with st.container(key="argument"):
        st.text(finding.because)
    _links(watch, finding, axis, table)
    _picture(watch, finding, axis)
    st.markdown("**Witness**: the events that prove it, in the order in which they took effect")
    widgets.events_table(table, key="witness")
    if finding.also:
        st.markdown(f"**{_count(len(finding.also), 'consequence')}** of it")
        with st.container(key="consequences"):
            for other in finding.also[:CONSEQUENCES_MAX]:
                st.text(f"{other.detector} · slot {other.slot} · {other.because}")
            if len(finding.also) > CONSEQUENCES_MAX:
                st.caption(f"and {len(finding.also) - CONSEQUENCES_MAX} more")
    with st.expander("As an issue: Markdown to copy", icon=":material/content_copy:"):
        st.code(finding.markdown(), language="markdown", wrap_lines=True)


def page(watch: Watch) -> None:
    """Draw the page."""

    def body() -> None:
        watch.refresh()
        if widgets.process_of(watch) is None:
            widgets.no_events()
            return
        report = watch.report()
        _board(report.verdicts)
        if not report.findings:
            _nothing_found(report.verdicts)
            return
        wanted = st.query_params.get("finding")
        keys = [contradictions.key(finding) for finding in report.findings]
        chosen = keys.index(wanted) if wanted in keys else 0
        st.markdown(_summary(report.findings))
        if len(report.findings) > 1:
            _ranked(report.findings, chosen)
        _detail(watch, report.findings[chosen])

    widgets.refreshing(body)
