"""A packed trace tells what its directory tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import slotscope
from slotscope.instrument import probe, store
from slotscope.instrument.cli import build
from slotscope.instrument.collector import Collector
from slotscope.instrument.event import Op
from slotscope.instrument.sealed.pack import PackError, pack
from slotscope.instrument.sealed.sealer import Limits

TABLES = ("events", "requests", "hooks", "notes", "gaps", "anchors", "processes", "meta", "leases")


@pytest.fixture
def packed(traced: Path, tmp_path: Path) -> Path:
    """Of a trace of which a part is lost, and more may come."""
    number = probe.request("it's r1")
    probe.emit(Op.ALLOCATE, slots=[2, 1], request=number)
    probe.emit(Op.COPY, slots=[1, 2], src_slot=[1])  # refused
    out = tmp_path / "out.duckdb"
    with slotscope.open(traced) as trace:
        assert pack(trace, out) == 2
    return out


def told(path: Path) -> dict[str, list[dict[str, Any]]]:
    with slotscope.open(path) as trace:
        return {t: trace.sql(f"FROM {t} ORDER BY ALL").to_pylist() for t in TABLES}


def test_a_packed_trace_tells_the_same(traced: Path, packed: Path) -> None:
    assert told(packed) == told(traced)
    with slotscope.open(traced) as whole, slotscope.open(packed) as file:
        assert file.watermark == whole.watermark
        assert whole.sql("FROM gaps").num_rows == 1
        assert (file.stored, file.live, file.grown(), file.catch_up()) == (
            True,
            False,
            False,
            False,
        )
    assert packed.stat().st_mode & 0o777 == 0o600
    assert list(packed.parent.glob("*.new")) == []


def test_commands_take_a_packed_trace(packed: Path) -> None:
    for arguments in (["check"], ["slots"], ["doctor"], ["sql"]):
        result = CliRunner().invoke(build(None), [*arguments, str(packed)])
        assert result.exit_code in (0, 2), (arguments, result.output)
    again = packed.with_name("again.duckdb")
    result = CliRunner().invoke(build(None), ["pack", str(packed), str(again)])
    assert result.exit_code == 0
    assert told(again) == told(packed)


def test_a_generation_can_be_read_alone(tmp_path: Path) -> None:
    directory = tmp_path / "trace"
    probe.start(directory, collector=False)
    probe.emit(Op.FREE, slots=1)
    probe.stop()
    Collector(directory, linger_s=0, limits=Limits(events=1)).run()
    with slotscope.open(directory / "gen-000000.duckdb") as trace:
        assert trace.sql("FROM events").num_rows == 1
    with pytest.raises(slotscope.TraceError, match="a part of a trace"):
        slotscope.open(directory / store.NAME)


def test_what_cannot_be_packed_is_refused(traced: Path, packed: Path, tmp_path: Path) -> None:
    with slotscope.open(traced) as trace, pytest.raises(PackError, match="exists already"):
        pack(trace, packed)
    packed.write_text("no trace")
    with pytest.raises(slotscope.TraceError, match="is no packed trace"):
        slotscope.open(packed)
