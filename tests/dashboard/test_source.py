"""Watch: a growing trace is followed, and its verdicts with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slotscope.dashboard import source
from slotscope.instrument import probe
from slotscope.instrument.event import Op, Role


def test_what_comes_later_is_seen_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "REST", 0)
    probe.start(tmp_path / "trace", collector=False)
    try:
        probe.hook("test", list(Op), live=True)
        number = probe.request("q")
        probe.emit(Op.REQUEST_BEGIN, request=number, row=1, label=3)
        probe.emit(Op.ALLOCATE, slots=5, request=number, role=Role.LIVE)
        watch = source.Watch(tmp_path / "trace")
        assert watch.report().verdict == "clean"
        probe.emit(Op.ALLOCATE, slots=5, request=number, role=Role.LIVE)
        watch.read_at -= 10  # it has rested long enough
        watch.refresh()
        assert watch.sql("SELECT count(*) AS n FROM events").to_pylist() == [{"n": 3}]
        assert watch.report().verdict == "found"
    finally:
        probe.stop()
