"""Contradictions on pages that draw the trace: where they lie, and the way to their argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from slotscope.instrument.findings import Finding

from . import links
from .queries import Axis
from .source import Watch

LISTED_MAX = 6
"""Contradictions that a page links to; the page of findings has all."""

Row = dict[str, Any]


def key(finding: Finding) -> str:
    """What a link calls a finding: its detector and its witness, which stay when others come."""
    return "-".join([finding.detector, *(f"{event:x}" for event in finding.witness)])


def placed(watch: Watch, axis: Axis) -> list[Row]:
    """Findings and their consequences within the axis, causes first.

    Each has detector, because, pool, slot, generation, request, forward, x, and `key` of the cause
    that it is told under.
    """
    rows = []
    told = [(each, cause) for cause in watch.report().findings for each in (cause, *cause.also)]
    for finding, cause in told:
        x = float(finding.position)
        if axis.unit == "time":
            x = ((finding.time_ns or axis.zero_ns) - axis.zero_ns) / 1e9
        if finding.process != axis.process or not axis.low <= x <= axis.high:
            continue
        rows.append({
            "detector": f"{finding.detector} {finding.name}",
            "because": finding.because,
            "pool": finding.pool,
            "slot": finding.slot,
            "generation": finding.generation,
            "request": finding.request,
            "forward": finding.forward,
            "x": x,
            "key": key(cause),
            "cause": finding is cause,
        })  # fmt: skip
    return sorted(rows, key=lambda row: not row["cause"])


def listed(rows: Iterable[Row], fits: Callable[[Row], bool] = lambda row: True) -> None:
    """Links to the arguments of those rows that fit."""
    told: dict[str, Row] = {}
    for row in rows:
        if fits(row):
            told.setdefault(row["key"], row)
    if not told:
        return
    with st.container(horizontal=True, key="contradictions"):
        for row in list(told.values())[:LISTED_MAX]:
            where = f"forward {row['forward']}" if row["slot"] is None else f"slot {row['slot']}"
            links.go(
                "findings", f"{row['detector']}: {where}", icon=":material/gavel:",
                finding=row["key"],
            )  # fmt: skip
        if len(told) > LISTED_MAX:
            links.go("findings", f"and {len(told) - LISTED_MAX} more", icon=":material/more_horiz:")
