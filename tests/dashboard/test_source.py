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
        count = "SELECT count(*) AS n FROM events"
        assert watch.sql(count) is watch.sql(count)  # a kept answer
        probe.emit(Op.ALLOCATE, slots=5, request=number, role=Role.LIVE)
        watch.read_at -= 10  # it has rested long enough
        watch.refresh()
        assert watch.sql(count).to_pylist() == [{"n": 3}]
        assert watch.report().verdict == "found"
    finally:
        probe.stop()


def test_kept_answers_are_bounded(tmp_path: Path) -> None:
    probe.start(tmp_path / "trace", collector=False)
    probe.stop()
    watch = source.Watch(tmp_path / "trace")
    for number in range(source.KEPT_MAX + 5):
        assert watch.sql(f"SELECT {number} AS n").to_pylist() == [{"n": number}]
    many = f"SELECT * FROM range({source.KEPT_ROWS_MAX + 1})"
    assert watch.sql(many) is not watch.sql(many)
    assert len(watch._answers) == source.KEPT_MAX
