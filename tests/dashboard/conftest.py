"""Traces written once and read by all tests of the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import slotscope
from slotscope.dashboard import queries
from slotscope.dashboard.queries import Axis
from slotscope.instrument.trace import Trace
from tests.dashboard import stages, traces

HOSTILE = '<img src=x onerror="window.hit=1">![p](http://evil.example/p) **b** $x$ :red[y] `z`'
"""A request id that would do something wherever it's taken for Markdown or HTML."""


@pytest.fixture(scope="session")
def aliased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace in which a verify in flight writes into a donated slot; the repeat is hostile."""
    directory: Path = tmp_path_factory.mktemp("traces") / "aliased"
    traces.write(directory, aliased=True, name=HOSTILE)
    return directory


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same load with a spare slot at hand."""
    directory: Path = tmp_path_factory.mktemp("traces") / "clean"
    traces.write(directory, aliased=False)
    return directory


@pytest.fixture(scope="session")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`paired("wrong")`: a trace of two stages, with a hostile request, paired like this."""
    written: dict[str, Path] = {}

    def write(pairing: str) -> Path:
        if pairing not in written:
            written[pairing] = tmp_path_factory.mktemp("stages") / pairing
            stages.write(written[pairing], pairing=pairing, name=HOSTILE)
        return written[pairing]

    return write


@pytest.fixture
def trace(aliased: Path) -> Iterator[Trace]:
    with slotscope.open(aliased) as opened:
        yield opened


@pytest.fixture
def spared(clean: Path) -> Iterator[Trace]:
    with slotscope.open(clean) as opened:
        yield opened


def whole(source: Trace, unit: str = "order") -> Axis:
    """The whole axis of the trace's one process."""
    row = queries.processes(source).to_pylist()[0]
    high = float(row["positions"]) if unit == "order" else (row["last_ns"] - row["first_ns"]) / 1e9
    return Axis(row["process"], unit, row["first_ns"], 0.0, high)
