"""Wherever a crash cuts a sound trace, what is left of it is sound: nobody is accused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from asking import Build

import slotscope
from slotscope.instrument import check
from tests.end_to_end.load import make_load, run_load
from tests.end_to_end.traced import tracing

CUTS = 8


@pytest.mark.parametrize(
    ("strategy", "drafter"),
    [("extra_buffer_lazy", "NEXTN"), ("extra_buffer", "NGRAM"), ("extra_buffer", "")],
)
def test_a_cut_trace_has_no_finding(
    build: Build, tmp_path: Path, strategy: str, drafter: str
) -> None:
    with tracing(tmp_path / "trace"):
        engine = build(
            max_mamba_cache_size=13,
            mamba_radix_cache_strategy=strategy,
            speculative_algorithm=drafter,
            chunked_prefill_size=100,
        )
        run_load(engine, make_load(seed=5))
    with slotscope.open(tmp_path / "trace") as trace:
        con = trace.connection
        con.execute("CREATE TEMP TABLE whole AS FROM events")
        orders = con.execute(
            'SELECT DISTINCT "order" FROM whole WHERE slot IS NOT NULL ORDER BY ALL'
        ).fetchall()
        for (last,) in sorted(Random(5).sample(orders, CUTS)):
            con.execute(
                f'CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM whole WHERE "order" <= {last}'
            )
            assert con.execute('SELECT max("order") FROM events').fetchall() == [(last,)]
            report = check.run(con)
            assert [finding.because for finding in report.findings] == [], f"cut after {last}"
            assert {verdict.verdict for verdict in report.verdicts} == {"clean"}
