"""Engines of this process, traced and judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import slotscope
from slotscope.instrument import check, probe
from slotscope.instrument.findings import Finding
from slotscope.instrument.report import Report


@contextmanager
def tracing(directory: Path) -> Iterator[None]:
    """Trace this process meanwhile, without a collector: what is read comes from the segments."""
    probe.start(directory, collector=False)
    try:
        yield
    finally:
        probe.stop()


@dataclass(frozen=True)
class Judged:
    """What the detectors say of a trace, and what it says of itself."""

    report: Report
    ops: dict[str, int]  # `evict`, `donate suppressed`, ... -> how often
    givers: dict[tuple[int, int], int]  # (slot, generation) -> request that it was allocated for

    @property
    def verdicts(self) -> dict[str, str]:
        """D1 -> found, clean or blind."""
        return {verdict.detector: verdict.verdict for verdict in self.report.verdicts}

    @property
    def found(self) -> list[Finding]:
        """Causes and their consequences."""
        return [each for cause in self.report.findings for each in (cause, *cause.also)]

    @property
    def leases(self) -> set[tuple[int | None, int | None]]:
        """(slot, generation) of all that was found."""
        return {(finding.slot, finding.generation) for finding in self.found}

    @property
    def requests(self) -> set[int | None]:
        """Requests that are named by anything that was found."""
        return {finding.request for finding in self.found}


def judged(directory: Path) -> Judged:
    """The verdicts on a trace directory."""
    with slotscope.open(directory) as trace:
        counts = trace.sql(
            "SELECT concat_ws(' ', op, outcome) AS what, count(*) AS n FROM events GROUP BY ALL"
        )
        leases = trace.sql("SELECT slot, generation, request FROM leases")
        report = check.run(trace)
    return Judged(
        report,
        {row["what"]: row["n"] for row in counts.to_pylist()},
        {(row["slot"], row["generation"]): row["request"] for row in leases.to_pylist()},
    )
