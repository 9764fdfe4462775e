"""Each fault is found by its detector and by no other; the same run without it is clean."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from asking import Build

from slotscope.engine.config import ConfigError
from slotscope.engine.faults import Fault, known, named
from slotscope.engine.faults.loads import LOADS
from tests.end_to_end.traced import Judged, judged, tracing

FAULTS = known()


def run(build: Build, directory: Path, fault: Fault, names: tuple[str, ...]) -> Judged:
    with tracing(directory):
        LOADS[fault.load](build(**fault.flags, fault=names))
    return judged(directory)


@pytest.fixture(scope="module")
def sound(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Judged]:
    """The run of a fault without the fault. Faults that share load and flags share it."""

    @cache
    def once(load: str, flags: tuple[tuple[str, object], ...]) -> Judged:
        twin = next(f for f in FAULTS.values() if (f.load, _flags(f)) == (load, flags))
        return run(build, tmp_path_factory.mktemp("sound") / "trace", twin, ())

    return lambda name: once(FAULTS[name].load, _flags(FAULTS[name]))


def _flags(fault: Fault) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(fault.flags.items()))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_its_detector_and_no_other(
    build: Build, tmp_path: Path, name: str
) -> None:
    told = run(build, tmp_path / "trace", FAULTS[name], (name,))
    causes = {finding.detector: finding.because for finding in told.report.findings}
    assert causes.keys() == {FAULTS[name].detector}, causes
    assert "blind" not in told.verdicts.values()


@pytest.mark.parametrize("name", FAULTS)
def test_without_the_fault_nothing_is_found(sound: Callable[[str], Judged], name: str) -> None:
    told = sound(name)
    assert [finding.because for finding in told.found] == []
    assert set(told.verdicts.values()) == {"clean"}


def test_an_unknown_fault_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no fault is called unlock.*unlocked-twice"):
        named(["unlock"])


def test_a_fault_of_a_part_that_is_not_in_use_is_refused(build: Build) -> None:
    with pytest.raises(ConfigError, match="breaks the engine's ExtraBufferLazy, which is not"):
        build(fault=("spare-held",), mamba_radix_cache_strategy="extra_buffer")
    with pytest.raises(ConfigError, match="which another fault breaks too"):
        build(fault=("unlocked-twice", "freed-twice"))
