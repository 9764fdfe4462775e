"""Sight: what of a trace a detector can't see, so that it answers blind where it found nothing."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from .detectors import Detector
from .event import Op, op_name

_OPS = {op_name(op) for op in Op}


class Sight:
    """What of a trace can't be seen. Leans on `losses` and `fold`, which `fold.prepare` makes."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._speakers = [
            process
            for (process,) in con.execute(
                "SELECT DISTINCT process FROM events WHERE slot IS NOT NULL ORDER BY process"
            ).fetchall()
        ]
        hooks = con.execute(
            "SELECT process, op, bool_or(live) FROM ("
            " SELECT process, name, op, arg_max(live, time_ns) AS live FROM hooks GROUP BY ALL"
            ") GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        self._live = {(process, op) for process, op, live in hooks if live}
        self._dead = [(process, op) for process, op, live in hooks if not live]
        self._losses = con.execute(
            "SELECT process, op, count, first_order, last_order, blinds_all FROM losses"
            " ORDER BY ALL"
        ).fetchall()

    def blind_spots(self, detector: Detector) -> list[str]:
        """Why the detector can't say clean; empty if it can."""
        if not self._speakers:
            return ["the trace has no event on any slot"]
        return [*self._unreported(detector), *self._lost(detector), *self._unknown(detector)]

    def _unreported(self, detector: Detector) -> Iterator[str]:
        """Each process that moves slots must report all that the detector needs; what another one
        reports says nothing of this one's slots."""
        silent = {
            process: [op for op in detector.needs if (process, op) not in self._live]
            for process in self._speakers
        }
        for process, op in self._dead:
            if op in detector.needs and process not in silent:
                silent[process] = []
            if op in detector.needs and op not in silent[process]:
                silent[process].append(op)
        never = [op for op in detector.needs if all(op in ops for ops in silent.values())]
        if never:
            yield f"no process reports {', '.join(never)} through a live hook"
        for process, ops in sorted(silent.items()):
            told = [op for op in ops if op not in never]
            if told:
                yield f"process {process} has no live hook for {', '.join(told)}"

    def _lost(self, detector: Detector) -> Iterator[str]:
        for process, op, count, first, last, blinds_all in self._losses:
            if not blinds_all and op not in detector.needs:
                continue
            noun = "events" if op in _OPS else "facts"
            what = f"{count} {op} {noun}" if op else f"{count or 'some'} damaged records"
            where = "" if first is None else f" between orders {first} and {last}"
            yield f"process {process} lost {what}{where}"

    def _unknown(self, detector: Detector) -> Iterator[str]:
        if detector.blind_where is None:
            return
        counts = self._con.execute(
            f"SELECT op, count(*) FROM fold WHERE {detector.blind_where} GROUP BY op ORDER BY op"
        ).fetchall()
        for op, count in counts:
            yield f"{count} {op} events lack the depth that they leave"
