"""When a collector seals, and what it does where it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

import slotscope
from slotscope.instrument import probe
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op
from slotscope.instrument.sealed import manifest
from slotscope.instrument.sealed.sealer import EVENTS_ENVIRONMENT, LimitError, Limits, Sealer
from slotscope.instrument.store import NAME, Store


def talk(directory: Path) -> None:
    probe.start(directory, collector=False)
    for i in range(50):
        probe.emit(Op.ADVANCE, slots=[1, 2], depth=i)
    probe.stop()


@pytest.mark.parametrize(("limits", "sealed"), [
    (Limits(events=100), 1), (Limits(events=101), 0), (Limits(minutes=1e-9), 1),
])  # fmt: skip
def test_a_collector_seals_by_number_and_by_age(
    tmp_path: Path, limits: Limits, sealed: int
) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    Collector(directory, linger_s=0, limits=limits).run()
    assert len(manifest.find(directory)) == sealed
    assert manifest.latest(directory) == (0 if sealed else None)
    with slotscope.open(directory) as trace:
        assert trace.sql("FROM events").num_rows == 100


def test_what_cannot_be_sealed_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = tmp_path / "trace"
    talk(directory)
    Collector(directory, linger_s=0).run()
    opened = Store(directory / NAME, uid=0)
    sealer = Sealer(Limits(events=1))
    (directory / manifest.data_name(0)).mkdir()  # in the way
    sealer.step(opened)
    assert "Nothing was sealed" in caplog.text
    (directory / manifest.data_name(0)).rmdir()
    sealer.step(opened)  # Too early to try again.
    opened.close()
    assert not list(directory.glob("gen-*"))
    with slotscope.open(directory) as trace:
        assert trace.sql("FROM events").num_rows == 100


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limits.of_environment() == Limits()
    monkeypatch.setenv(EVENTS_ENVIRONMENT, "1000")
    assert Limits.of_environment() == Limits(events=1000)
    monkeypatch.setenv(EVENTS_ENVIRONMENT, "0")
    with pytest.raises(LimitError, match="positive"):
        Limits.of_environment()
