"""What a trace of the server says about the cells that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .trial import Result

if TYPE_CHECKING:
    from slotscope.instrument.findings import Finding
    from slotscope.instrument.trace import Trace

Thing = tuple[int | None, ...]

_REQUESTS = """
SELECT process, request, request_id FROM requests WHERE request_id IN (SELECT unnest(?::VARCHAR[]))
"""
_RESTORED = """
SELECT DISTINCT process, request, pool, src_slot, src_generation FROM events
WHERE op = 'restore' AND (process, request) IN (SELECT (unnest(?::INTEGER[]), unnest(?::INTEGER[])))
"""


def explain(trace: Trace, results: Sequence[Result]) -> dict[int, tuple[Finding, ...]]:
    """Findings for each cell that differs, by the cell's index; the worst and earliest first.

    A finding is the cell's where it, what follows from it or its witness names the cell's donor or
    its warm request, or the lease of a checkpoint that one of the two was restored from.
    """
    from slotscope.instrument import check

    differing = [result for result in results if result.verdict == "differs"]
    if not differing:
        return {}
    owners = _owners(trace, {name for each in differing for name in _names(each)})
    findings = [(finding, _things(finding)) for finding in check.run(trace).findings]
    return {
        result.cell.index: tuple(
            finding
            for finding, things in findings
            if things & {thing for name in _names(result) for thing in owners.get(name, ())}
        )
        for result in differing
    }


def _names(result: Result) -> Iterable[str]:
    """The requests that the warm answer depends on."""
    requests = result.requests or {}
    return [requests[name] for name in ("donor", "warm") if name in requests]


def _owners(trace: Trace, names: set[str]) -> Mapping[str, set[Thing]]:
    """Request id -> its (process, request), and leases (process, pool, slot, generation) that it
    was restored from."""
    con = trace.connection
    known = {
        (process, request): name
        for process, request, name in con.execute(_REQUESTS, [sorted(names)]).fetchall()
    }
    owners: dict[str, set[Thing]] = {}
    for thing, name in known.items():
        owners.setdefault(name, set()).add(thing)
    numbers = [[process for process, _ in known], [request for _, request in known]]
    for process, request, *lease in con.execute(_RESTORED, numbers).fetchall():
        owners[known[process, request]].add((process, *lease))
    return owners


def _things(finding: Finding) -> set[Thing]:
    """Requests and leases that a finding names."""
    things: set[Thing] = {
        (event["process"], event["request"]) for event in finding.events if "request" in event
    }
    for each in (finding, *finding.also):
        if each.request is not None:
            things.add((each.process, each.request))
        if each.slot is not None:
            things.add((each.process, each.pool, each.slot, each.generation))
    return things
