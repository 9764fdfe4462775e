"""The traffic that collector and detectors are measured on is an engine's: nothing to be found."""

from __future__ import annotations

from pathlib import Path

from support.traffic import Traffic

import slotscope
from slotscope.instrument import check, probe


def test_every_event_is_counted_and_every_detector_is_clean(tmp_path: Path) -> None:
    probe.start(tmp_path / "trace", collector=False)
    traffic = Traffic()
    traffic.write(10_000)
    probe.stop()
    with slotscope.open(tmp_path / "trace") as trace:
        [(events,)] = trace.connection.execute("SELECT count(*) FROM events").fetchall()
        report = check.run(trace)
    assert events == traffic.said_count
    assert {verdict.verdict for verdict in report.verdicts} == {"clean"}
