"""The page of faults is made from the faults, and each fault says what a reader wants to know."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from slotscope.engine.faults import known, page

DOCS = Path(__file__).parents[3] / "docs" / "faults.md"


def test_the_docs_are_those_of_the_faults() -> None:
    assert DOCS.read_text() == page.text(), (
        "docs/faults.md is stale. Run: python -m slotscope.engine.faults.page > docs/faults.md"
    )


def test_each_kind_has_two_faults_at_least() -> None:
    kinds = Counter(fault.kind for fault in known().values())
    assert kinds.keys() == page.KINDS.keys()
    assert min(kinds.values()) >= 2
