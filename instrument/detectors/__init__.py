"""Detectors: one SQL file each. Its header says what it looks for; its query returns findings.

A header is the file's leading comment: `-- key: value`, and lines indented below go on. Keys:

    id, name       D1, depth
    severity       corruption: an answer may be wrong
    invariant      what always holds in a sound engine
    needs          ops that must be reported; where one is not, the detector is blind
    blind where    condition on a row of `fold` (see instrument/fold) that leaves it unable to judge
    evidence       which events the witness names
    example        a history (tests/histories.py) in which it is found
    false positives
    rule           how a word of the invariant is made exact (may be missing)
    explains       `D1 lease`: findings of D1 on the same lease, later, are consequences of this one

Its columns are those of `COLUMNS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from slotscope.instrument.event import Op, op_name

COLUMNS = (
    "process", "pool", "slot", "generation", "request", "forward", "position", "time_ns",
    "witness", "because",
)  # fmt: skip
"""What a detector's query returns. `witness` is the shortest list of event ids that show it, and
the last one is the act in which the contradiction stands."""

Via = Literal["lease", "slot", "request"]
"""What a cause and its consequence have in common."""

_REQUIRED = {
    "id", "name", "severity", "invariant", "needs", "evidence", "example", "false positives",
    "explains",
}  # fmt: skip
_OPTIONAL = {"rule", "blind where"}


class DetectorError(ValueError):
    """A detector's file that can't be used. The message names the file and the line to mend."""


@dataclass(frozen=True, slots=True)
class Detector:
    """One invariant, and the query that finds where it is broken."""

    id: str
    name: str
    severity: str
    invariant: str
    needs: tuple[str, ...]
    blind_where: str | None
    evidence: str
    example: str
    false_positives: str
    rule: str | None
    explains: tuple[tuple[str, Via], ...]
    sql: str
    file: str

    @property
    def title(self) -> str:
        """How pages call it: `D1 depth`."""
        return f"{self.id} {self.name}"


@cache
def load() -> tuple[Detector, ...]:
    """All detectors, by number."""
    folder = files(__package__)
    found = [
        parse(entry.name, entry.read_text())
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    found.sort(key=lambda detector: (detector.id[0], int(detector.id[1:])))
    ids = [detector.id for detector in found]
    for detector in found:
        unknown = {other for other, _ in detector.explains} - set(ids)
        if unknown or ids.count(detector.id) > 1:
            raise DetectorError(
                f"{detector.file}: id {detector.id} must be the only one, and what it explains "
                f"must exist; there are {', '.join(ids)}; unknown are {sorted(unknown)}."
            )
    return tuple(found)


def parse(file: str, text: str) -> Detector:
    """A detector from its file's text. DetectorError if the header is not complete or not right."""
    header = _header(file, text)
    missing, strange = _REQUIRED - header.keys(), header.keys() - _REQUIRED - _OPTIONAL
    if missing or strange:
        raise DetectorError(
            f"{file}: the header lacks {sorted(missing)} and has unknown keys {sorted(strange)}. "
            "Each detector says the same things; see slotscope/instrument/detectors."
        )
    ops = {op_name(op) for op in Op}
    needs = tuple(re.split(r",\s*", header["needs"]))
    if not ops.issuperset(needs):
        raise DetectorError(
            f"{file}: `needs` names {sorted(set(needs) - ops)}, but an engine says only "
            f"{', '.join(sorted(ops))}."
        )
    return Detector(
        id=header["id"],
        name=header["name"],
        severity=header["severity"],
        invariant=header["invariant"],
        needs=needs,
        blind_where=header.get("blind where"),
        evidence=header["evidence"],
        example=header["example"],
        false_positives=header["false positives"],
        rule=header.get("rule"),
        explains=tuple(_edge(file, edge) for edge in re.split(r",\s*", header["explains"])),
        sql=text,
        file=file,
    )


def _header(file: str, text: str) -> dict[str, str]:
    header: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if opening := re.match(r"-- ([a-z][a-z ]*): (.+)", line):
            key, value = opening.groups()
            if key in header:
                raise DetectorError(f"{file}: `{key}` is said twice in the header.")
            header[key] = value.strip()
        elif key:
            header[key] += " " + line.removeprefix("--").strip()
        else:
            raise DetectorError(f"{file}: {line!r} belongs to no key; a header begins `-- id: D1`.")
    return header


def _edge(file: str, text: str) -> tuple[str, Via]:
    other, _, via = text.partition(" ")
    for known in get_args(Via):
        if via == known:
            return other, known
    raise DetectorError(
        f"{file}: `explains` has {text!r}; say what both share: {', '.join(get_args(Via))}."
    )
