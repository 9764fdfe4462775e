"""Stages that are processes give what stages of one process give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asking import Build, greedy, random_prompt

import slotscope
from slotscope.engine.config import ConfigError
from slotscope.engine.engine import Engine
from slotscope.engine.pipeline.error import PipelineError
from slotscope.engine.pipeline.lead import LeadScheduler
from tests.end_to_end.traced import judged, tracing
from tests.engine.pipeline.arrivals import mixed, serve


@contextmanager
def processes(staged: Build, **knobs: Any) -> Iterator[Engine]:
    """An engine whose stages are processes, which end with it."""
    engine = staged(pp_processes=True, **knobs)
    try:
        yield engine
    finally:
        engine.stop()


@pytest.mark.parametrize("drafter", ["NGRAM", "NEXTN"])
def test_two_processes_change_nothing(staged: Build, tmp_path: Path, drafter: str) -> None:
    alone = serve(staged(speculative_algorithm=drafter), mixed(8))
    knobs: dict[str, Any] = {"speculative_algorithm": drafter, "pp_size": 2}
    with tracing(tmp_path / "trace"), processes(staged, **knobs) as engine:
        answers = serve(engine, mixed(8))
    assert answers == alone
    told = judged(tmp_path / "trace")
    assert set(told.verdicts.values()) == {"clean"}
    with slotscope.open(tmp_path / "trace") as trace:
        commits = trace.sql(
            "SELECT process, pool, count(*) AS n FROM events"
            " WHERE op = 'scatter' AND role = 'live' GROUP BY ALL ORDER BY ALL"
        ).to_pylist()
    assert [(row["process"], row["pool"]) for row in commits] == [(0, 0), (1, 1)]
    assert commits[0]["n"] == commits[1]["n"]


def test_each_process_keeps_its_part_on_the_host(staged: Build, tmp_path: Path) -> None:
    prompts = [random_prompt(length, length) for length in (100, 140, 180)] * 2
    plain = staged()
    alone = [plain.generate([prompt], greedy(8))[0].output for prompt in prompts]
    knobs: dict[str, Any] = {
        "pp_size": 2,
        "enable_hierarchical_cache": True,
        "max_mamba_cache_size": 4,
        "max_total_tokens": 256,
    }
    with tracing(tmp_path / "trace"), processes(staged, **knobs) as engine:
        assert [engine.generate([prompt], greedy(8))[0].output for prompt in prompts] == alone
        load_backs = engine.stats().load_backs
    assert set(judged(tmp_path / "trace").verdicts.values()) == {"clean"}
    with slotscope.open(tmp_path / "trace") as trace:
        back = trace.sql(
            "SELECT process, pool, component, count(*) AS n FROM events"
            " WHERE op = 'load_back' GROUP BY ALL ORDER BY ALL"
        ).to_pylist()
    told = {(row["process"], row["pool"], row["component"]): row["n"] for row in back}
    parts = [(stage, stage, part) for stage in (0, 1) for part in ("conv", "ssm")]
    assert told == dict.fromkeys(parts, load_backs)
    assert load_backs > 0


def test_all_processes_hear_of_aborts_retractions_and_flushes(staged: Build) -> None:
    prompts = [random_prompt(100, seed) for seed in range(3)]
    alone = staged().generate(prompts, greedy(20))
    with processes(staged, pp_size=2) as engine:
        cold = engine.generate(prompts[:1], greedy(20))
        assert engine.flush_cache()
        arrivals = [request for _, request in mixed(2, tokens_max=60)]
        for request in arrivals:
            engine.submit(request)
        for _ in range(6):
            engine.turn()
        engine.retract("a0")
        engine.abort("a1")
        again = engine.generate(prompts, greedy(20))
    assert [r.output for r in cold + again] == [r.output for r in [alone[0], *alone]]
    assert again[0].usage.cached_tokens == 0
    assert arrivals[1].finish_reason == "abort"


def test_a_process_that_is_gone_ends_the_engine_with_its_stage(staged: Build) -> None:
    with processes(staged, pp_size=2) as engine:
        engine.generate([random_prompt(10, seed=1)], greedy(2))
        assert isinstance(engine.scheduler, LeadScheduler)
        engine.scheduler.crew.processes[0].kill()
        engine.scheduler.crew.processes[0].wait()
        with pytest.raises(PipelineError, match="stage 1"):
            engine.generate([random_prompt(10, seed=1)], greedy(2))


def test_one_stage_makes_no_processes(staged: Build) -> None:
    with pytest.raises(ConfigError, match="there is one stage"):
        staged(pp_processes=True)
