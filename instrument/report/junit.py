"""A report as JUnit XML, which CI systems show beside other tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from slotscope.instrument.findings import Finding, Verdict

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def suite(verdicts: Sequence[Verdict], findings: Sequence[Finding]) -> str:
    """One test case for each detector.

    A case fails with the detector's causes. Where all that a detector found follows from another
    one's findings, it fails with that sentence.
    """
    states = [verdict.verdict for verdict in verdicts]
    root = ElementTree.Element(
        "testsuite",
        name="slotscope",
        tests=str(len(states)),
        failures=str(states.count("found")),
        errors=str(states.count("blind")),
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            root, "testcase", classname="slotscope", name=f"{verdict.detector} {verdict.name}"
        )
        if verdict.verdict == "found":
            causes = [f for f in findings if f.detector == verdict.detector]
            told = [f"{cause.title}\n{cause.because}\n" for cause in causes]
            failure = ElementTree.SubElement(case, "failure", message=_text(verdict.why))
            failure.text = _text("\n".join(told) or "It follows from findings of other detectors.")
        elif verdict.verdict == "blind":
            ElementTree.SubElement(case, "error", message=_text(verdict.why), type="blind")
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _text(text: str) -> str:
    """XML 1.0 has no way to write most control characters."""
    return _NOT_XML.sub("\ufffd", text)
