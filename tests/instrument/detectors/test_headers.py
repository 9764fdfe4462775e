"""Each detector's file says the same things, and what it says is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from histories import connect
from verdicts import checked, judge

from slotscope.instrument import detectors, fold
from slotscope.instrument.detectors import COLUMNS, Detector, DetectorError, page

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
by_id = pytest.mark.parametrize("detector", detectors.load(), ids=lambda detector: detector.id)


@by_id
def test_its_example_is_found(detector: Detector) -> None:
    assert judge(detector.id, detector.example).verdict == "found"


@by_id
def test_its_query_has_the_fixed_columns(detector: Detector) -> None:
    with connect() as con:
        fold.prepare(con)
        columns = con.execute(f"DESCRIBE ({detector.sql})").fetchall()
    assert tuple(column[0] for column in columns) == COLUMNS
    assert dict(c[:2] for c in columns)["witness"] == "BIGINT[]"


@pytest.mark.parametrize("op", sorted({op for each in detectors.load() for op in each.needs}))
def test_a_dead_op_blinds_those_that_need_it_and_no_other(op: str) -> None:
    report = checked("r7+ r7+live3", dead=[op])
    blind = {verdict.detector for verdict in report.verdicts if verdict.verdict == "blind"}
    assert blind == {detector.id for detector in detectors.load() if op in detector.needs}


@by_id
def test_it_has_a_test_file_with_all_three_verdicts(detector: Detector) -> None:
    text = (HERE / f"test_{detector.file.removesuffix('.sql')}.py").read_text()
    for verdict in ("clean", "blind"):
        assert f'"{verdict}"' in text
    assert "witness" in text
    assert re.search(r"\[\[\d", text), "no finding is held against its events"


def test_the_page_of_anomalies_is_made_from_the_headers() -> None:
    """Write it anew with `python -m slotscope.instrument.detectors.page > docs/anomalies.md`."""
    assert (REPOSITORY / "docs" / "anomalies.md").read_text() == page.text()


HEADER = detectors.load()[0].sql


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("-- evidence:", "-- proof:"), r"lacks \['evidence'\].*\['proof'\]"),
        (HEADER.replace("needs: allocate", "needs: acquire"), r"names \['acquire'\]"),
        (HEADER.replace("D1 lease", "D1 node"), r"'D1 node'.*lease, slot, request"),
        ("-- id: D1\n-- id: D2\n", "said twice"),
        ("-- a comment\n", "belongs to no key"),
    ],
)
def test_a_wrong_header_is_an_error_that_names_the_file(text: str, message: str) -> None:
    with pytest.raises(DetectorError, match=r"d1\.sql.*" + message):
        detectors.parse("d1.sql", text)
