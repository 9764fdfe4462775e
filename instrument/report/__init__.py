"""Report: all verdicts and findings of one check, and the forms in which they leave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from slotscope.instrument.findings import Finding, State, Verdict

from . import document, junit, markdown, terminal

EXIT_CODES: dict[State, int] = {"clean": 0, "found": 1, "blind": 2}
"""Of `slotscope check`."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a check says. Findings are causes, the worst and earliest first."""

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    notes: dict[int, dict[str, str]]  # process -> what it told about itself

    @property
    def verdict(self) -> State:
        """Of the whole trace: found if any detector found something, clean if none was blind."""
        states = {verdict.verdict for verdict in self.verdicts}
        return "found" if "found" in states else "blind" if "blind" in states else "clean"

    @property
    def exit_code(self) -> int:
        """0 clean, 1 found, 2 blind."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return document.report_values(self.verdict, self.verdicts, self.findings, self.notes)

    def to_json(self) -> str:
        """As one JSON document, for programs."""
        return document.dumps(self.to_dict())

    def markdown(self) -> str:
        """As Markdown, ready to be pasted into an issue."""
        return markdown.report_text(self.verdicts, self.findings)

    def junit(self) -> str:
        """As JUnit XML, one test case for each detector: found fails it, blind is an error."""
        return junit.suite(self.verdicts, self.findings)

    def rich(self) -> RenderableType:
        """For a terminal."""
        return terminal.board(self.verdicts, self.findings)
