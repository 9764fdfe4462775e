"""docs/anomalies.md, made from the detectors' headers.

python -m slotscope.instrument.detectors.page > docs/anomalies.md
"""

from __future__ import annotations

import sys

from . import Detector, load

_OPENING = """\
# Anomalies

What the detectors of `slotscope check` look for. This page is made from the headers of
`instrument/detectors/*.sql`; each file's query is the exact definition. A verdict is *found*,
*clean* or *blind*: a detector never says clean of what it could not see. Examples are histories in
one line, see `tests/histories.py`; in each, the detector finds what it is there for.
"""


def text() -> str:
    """The whole page."""
    return "\n".join([_OPENING, *map(_section, load())])


def _section(detector: Detector) -> str:
    lines = [
        f"## {detector.title}",
        "",
        _sentence(detector.invariant),
        "",
        f"- **Severity**: {detector.severity}.",
        f"- **Needs**: {', '.join(f'`{op}`' for op in detector.needs)}.",
        f"- **Witness**: {detector.evidence}",
        f"- **False positives**: {detector.false_positives}",
    ]
    if detector.rule:
        lines.append(f"- **Rule**: {detector.rule}")
    explained = ", ".join(f"{other} of the same {via}" for other, via in detector.explains)
    lines += [
        f"- **Explains**, where they come later: {explained}.",
        f"- **Example**: `{detector.example}`",
        "",
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


if __name__ == "__main__":
    sys.stdout.write(text())
