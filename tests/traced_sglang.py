"""The real SGLang under the plugin: what it answered, what was told of it, what it held itself.

with traced_sglang(qwen3_next(), tmp_path / "trace", **flags) as engine:
    engine.ask([prompt], 16)
    rest()
with slotscope.open(tmp_path / "trace") as trace:
    assert_pool_is_sglang_s(trace)
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from real_sglang import NEWEST, RealSglang
from tiny_checkpoints import VOCABULARY, Checkpoint

from slotscope.instrument import check
from slotscope.instrument.trace import Trace

AUDITOR = Path(__file__).parent / "instrument/sglang/auditor"
ROOMY = {"mem_fraction_static": 0.8}  # SGLang counts what other programs take as its own
REST_SECONDS = 0.5  # an idle scheduler turns some hundred times in it, and is audited


def random_tokens(length: int, seed: int) -> list[int]:
    """A prompt, the same in each call."""
    draw = random.Random(seed)
    return [draw.randrange(3, VOCABULARY) for _ in range(length)]


def traced_sglang(
    checkpoint: Checkpoint,
    trace: Path,
    *,
    plugin: bool = True,
    release: str = NEWEST,
    plugins: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
    **flags: Any,
) -> RealSglang:
    """An engine that writes `trace`, its log beside it, audited; without the plugin, neither.

    Args:
        plugins, variables, flags: as of RealSglang; SGLang's memory is roomy by default.
    """
    traced = {"SLOTSCOPE_TRACE": str(trace)} if plugin else {}
    return RealSglang(
        checkpoint.folder,
        release=release,
        plugins=[*plugins, *([AUDITOR] if plugin else [])],
        variables={**traced, **(variables or {})},
        log=trace.with_suffix(".log"),
        **{**ROOMY, **flags},
    )


def rest() -> None:
    """Let the engine fall idle, so that the auditor compares."""
    time.sleep(REST_SECONDS)


def verdicts(trace: Trace) -> dict[str, str]:
    """What each detector says."""
    return {verdict.detector: verdict.verdict for verdict in check.run(trace).verdicts}


def assert_clean(trace: Trace) -> None:
    """Every detector could see, and found nothing; no hook failed."""
    report = check.run(trace)
    assert {each.verdict for each in report.verdicts} == {"clean"}, report.markdown()
    assert trace.sql("FROM notes WHERE key LIKE 'sglang.failed.%'").to_pylist() == []


def assert_pool_is_sglang_s(trace: Trace, audits_min: int = 3) -> None:
    """A pool made of events alone has SGLang's free list and tree, in each process at each rest."""
    audits = trace.sql("SELECT * FROM notes WHERE key = 'audit' ORDER BY time_ns").to_pylist()
    query = "FROM events WHERE slot IS NOT NULL ORDER BY time_ns, seq"
    events = trace.sql(query).to_pylist()
    sizes = trace.sql("FROM notes WHERE key = 'sglang.pool_0_slots'").to_pylist()
    size = {each["process"]: int(each["value"]) for each in sizes}
    for process in {event["process"] for event in events}:
        assert sum(audit["process"] == process for audit in audits) >= audits_min
    for audit in audits:
        free, tree = modelled(size[audit["process"]], audit, events)
        said = json.loads(audit["value"])
        assert (sorted(free), sorted(tree)) == (said["free"], said["tree"])


def modelled(
    size: int, audit: dict[str, Any], events: list[dict[str, Any]]
) -> tuple[set[int], set[int]]:
    """Free slots and slots of the tree by the time of an audit, from events alone."""
    free, tree = set(range(1, size + 1)), set[int]()
    for event in events:
        slot = event["slot"]
        if event["process"] != audit["process"] or event["time_ns"] > audit["time_ns"]:
            continue
        if event["op"] == "allocate":
            free.remove(slot)
        elif event["op"] == "free":
            free.add(slot)
        elif event["op"] == "insert" and event["outcome"] is None:
            tree.add(slot)
        elif event["op"] == "evict":
            tree.remove(slot)
    return free, tree
