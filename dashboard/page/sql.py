"""SQL: ask the trace anything. Read-only, with limits on time and memory."""

from __future__ import annotations

import io
import time

import pyarrow as pa
import pyarrow.csv
import streamlit as st

from slotscope.dashboard import widgets
from slotscope.dashboard.source import Watch
from slotscope.instrument.event import columns
from slotscope.instrument.trace import QueryError

ROWS_MAX = 10_000
"""Rows shown; a download has all of them."""

EXAMPLES = {
    "Acts by operation": """SELECT op, count(*) AS events, count(DISTINCT slot) AS slots
FROM events
GROUP BY op
ORDER BY events DESC""",
    "One slot's history": """SELECT position, op, role, request, forward, depth_before, depth, label
FROM events
WHERE slot = 1
ORDER BY position, "order", seq""",
    "Donations and their labels": """SELECT slot, generation, request, label, node, outcome
FROM events
WHERE op = 'donate'
ORDER BY position""",
    "Leases": """SELECT *
FROM leases
ORDER BY process, pool, slot, generation""",
    "Requests": """SELECT *
FROM requests""",
    "What was lost": """SELECT *
FROM gaps""",
}


def _example() -> None:
    chosen = st.session_state["example"]
    if chosen:
        st.session_state["q"] = EXAMPLES[chosen]


def _reference() -> None:
    """The columns of `events`, as the event defines them."""
    with st.expander("Tables and columns"):
        st.markdown(
            "Views: `events`, `leases`, `slots`, `ownership`, `requests`, `forwards`, `relays`, "
            "`processes`, `hooks`, `gaps`, `notes`, `anchors`. "
            'An event\'s place in its process is `(position, "order", seq)`.'
        )
        rows = [{"column": n, "type": d.name, "meaning": m} for n, d, m in columns()]
        st.dataframe(
            rows, hide_index=True, height=320, column_config={"meaning": {"width": "large"}}
        )


def _csv(table: pa.Table) -> bytes:
    """The table as CSV. Lists are written as text, since CSV has none."""
    flat = [
        pa.array([None if v is None else str(v) for v in column.to_pylist()])
        if pa.types.is_nested(column.type)
        else column
        for column in table.columns
    ]
    sink = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(dict(zip(_unique(table.column_names), flat, strict=True))), sink)
    return sink.getvalue()


def _unique(names: list[str]) -> list[str]:
    """Column names with a number where one comes twice, as in `SELECT slot, slot`."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique


def _answer(watch: Watch, query: str) -> None:
    begin = time.perf_counter()
    try:
        answer = watch.run(query)
    except QueryError as error:
        st.error("The query was refused.", icon=":material/block:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    took_ms = (time.perf_counter() - begin) * 1e3
    answer = answer.rename_columns(_unique(answer.column_names))
    with st.container(horizontal=True, vertical_alignment="center"):
        shown = f", the first {ROWS_MAX:,} shown" if answer.num_rows > ROWS_MAX else ""
        st.caption(f"{answer.num_rows:,} rows in {took_ms:,.0f} ms{shown}")
        st.download_button(
            "CSV", lambda: _csv(answer), file_name="slotscope.csv", mime="text/csv",
            icon=":material/download:",
        )  # fmt: skip
    widgets.events_table(answer.slice(0, ROWS_MAX), key="answer")


def page(watch: Watch) -> None:
    """Draw the page."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Example", list(EXAMPLES), index=None, key="example", on_change=_example, width=320,
            placeholder="start from one of these",
        )  # fmt: skip
    with st.form("editor", border=False):
        query = st.text_area(
            "Query", key="q", bind="query-params", height=190,
            placeholder="SELECT op, count(*) FROM events GROUP BY op", label_visibility="collapsed",
        )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center"):
            st.form_submit_button("Run", type="primary", icon=":material/play_arrow:")
            st.caption(
                "DuckDB SQL, read-only. A query that takes too long or too much memory is stopped."
            )
    if query and query.strip():
        watch.refresh()
        _answer(watch, query)
    else:
        widgets.teach(
            "Ask the trace",
            "Each row of `events` is one act on one slot. Start from an example, or from a "
            "finding: its page links here with the query that shows its witness.",
        )
    _reference()
