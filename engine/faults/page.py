"""docs/faults.md, made from the faults.

python -m slotscope.engine.faults.page > docs/faults.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .fault import Fault, known

KINDS = {
    "K1": "depth is not the label",
    "K2": "given away, and never written",
    "K3": "written while somebody else has it",
    "K4": "a verify without its commit",
    "K5": "paired by row",
    "K6": "padding and capture write live slots",
    "K7": "begun wrongly, or twice",
    "K8": "lost on a round trip",
    "K10": "leaked, freed twice, held too long",
    "K11": "tree and locks",
}
"""Kinds of bugs."""

_OPENING = """\
# Faults

Bugs that other engines had, each on a switch of the embedded engine: `slotscope serve --fault
NAME`. A fault replaces the part that it breaks by one that is wrong in this way and checks nothing,
so that the engine serves on, as the engine that had the bug did. Bugs that a patch of this engine
fixes are [patches](flags.md) only.

Each fault shows under the flags and the load that are named with it. The detector that is named
finds it there, and no other does, but for what follows from it; the same run without the fault is
clean. A test runs all of them (`tests/end_to_end/test_faults.py`). `python benchmarks faults`
prints what each run and all detectors on its trace take. Loads are those of
`engine/faults/loads.py`. This page is made by
`python -m slotscope.engine.faults.page > docs/faults.md`.
"""


def text() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _OPENING
    faults = known()
    for kind, what in KINDS.items():
        yield from (f"## {kind}: {what}", "")
        yield from (
            "| fault | upstream | what breaks | found by | shows with |",
            "| " + "--- | " * 5,
        )
        for name, fault in faults.items():
            if fault.kind == kind:
                yield _row(name, fault)
        yield ""


def _row(name: str, fault: Fault) -> str:
    flags = "".join(
        f" `--{key.replace('_', '-')}{'' if value is True else f' {value}'}`"
        for key, value in fault.flags.items()
    )
    shows = f"load {fault.load}{',' if flags else ''}{flags}"
    return f"| `{name}` | {fault.upstream} | {fault.breaks} | {fault.detector} | {shows} |"


if __name__ == "__main__":
    sys.stdout.write(text())
