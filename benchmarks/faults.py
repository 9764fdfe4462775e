"""The fault matrix: what each faulty run takes, and all detectors on its trace, by who finds it.

A tiny random model serves each fault's load, traced, once with the fault; then all detectors judge
the trace. A fault that its detector, and no other, does not find ends the benchmark.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from rich.progress import track
from table import Table

import slotscope
from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.faults import Fault, known
from slotscope.engine.faults.loads import LOADS
from slotscope.engine.models.testing import make_checkpoint
from slotscope.instrument import check, probe


def run() -> Table:
    """A row for each fault."""
    torch.set_num_threads(1)
    table = Table("faults", "faults: seconds of all detectors on the trace of each")
    judged = 0.0
    with tempfile.TemporaryDirectory() as folder:
        model = make_checkpoint(Path(folder) / "model")
        for name, fault in track(known().items(), "faults"):
            served_s, judged_s, found = _judged(model, Path(folder) / name, name, fault)
            assert found == {fault.detector}, f"{name} was found by {found}"
            judged += judged_s
            what = f"{fault.kind} {name}: found by {fault.detector}"
            table.add(what, "s", judged_s, served_s, "serving the load")
    table.add("all", "s", judged)
    table.notes.append("Wall time, one thread; a model is loaded and a trace is read beside it.")
    return table


def _judged(model: Path, trace: Path, name: str, fault: Fault) -> tuple[float, float, set[str]]:
    """Seconds of serving and of judging, and the detectors whose findings are causes."""
    knobs = {
        "model_path": model,
        "dtype": "float64",
        "context_length": 1024,
        "max_running_requests": 4,
        "max_total_tokens": 8192,
        "max_mamba_cache_size": 40,
        "mamba_track_interval": 64,
    }
    probe.start(trace, collector=False)
    try:
        engine = Engine(EngineConfig(**knobs | dict(fault.flags), fault=(name,)))
        start = time.perf_counter()
        LOADS[fault.load](engine)
        served_s = time.perf_counter() - start
    finally:
        probe.stop()
    with slotscope.open(trace) as opened:
        start = time.perf_counter()
        report = check.run(opened)
        judged_s = time.perf_counter() - start
    return served_s, judged_s, {finding.detector for finding in report.findings}
