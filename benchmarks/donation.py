"""Upstream's reproduction: donations that alias a verify in flight, counted and found.

The pool is small and full of cached checkpoints, so spares can't be had, and the first verify of a
prompt of 255 tokens writes the state of 256 into the very slot that the prefill files under 192.
What the trace tells is counted twice: by plain SQL on the events here, and by the detectors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.progress import Progress
from support.texts import distinct
from table import Table

import slotscope
from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder
from slotscope.engine.request import Request, SamplingParams
from slotscope.instrument import check, probe
from slotscope.instrument.findings import Finding

PROMPTS, PROMPT_TOKENS, INTERVAL, POOL = 40, 255, 256, 12
ANSWER = 24
PATCH = "prefill-donation-guard"

SEED = {
    PATCH: {"spare failures": 140, "suppressed donations": 70, "aliased donations": 0},
    "": {"spare failures": 140, "suppressed donations": 0, "aliased donations": 70},
}
"""Its figures with the patch and without."""

Lease = tuple[int, int, int]
"""Request, slot, generation."""

FAILED = """
    SELECT request FROM events
    WHERE op = 'allocate' AND outcome = 'failed' AND role = 'spare'
"""
SUPPRESSED = "SELECT count(*) FROM events WHERE op = 'donate' AND outcome = 'suppressed'"
ALIASED = """
    SELECT DISTINCT gift.request, gift.slot, gift.generation
    FROM events gift
    JOIN events late USING (process, pool, slot, generation)
    WHERE gift.op = 'donate' AND gift.outcome IS NULL
      AND late.op = 'scatter' AND late.kind = 'verify' AND late.depth > gift.label
      -- Launched before the donation, read after it: in flight.
      AND late.launch < gift."order" AND late."order" > gift."order"
"""
REPUBLISHED = """
    SELECT count(DISTINCT late.request)
    FROM events kept
    JOIN events late USING (process, request)
    WHERE kept.op = 'donate' AND kept.outcome = 'suppressed'
      -- A repeat comes to a node that has this state already.
      AND late.op = 'donate' AND coalesce(late.outcome, 'exists') = 'exists'
      AND late."order" > kept."order" AND late.label = ?
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of all prompts, each asked twice, and of the same prompts on an empty cache."""

    failures: int  # spares that could not be had
    failing: int  # prompts that met one
    suppressed: int
    aliased: frozenset[Lease]
    found: frozenset[Lease]  # that D1 names as causes
    foreign: int  # causes of any other detector, and verdicts that are blind
    republished: int  # requests whose suppressed checkpoint was donated later, under 256
    reused: int  # repeats that were served from the cache
    differing: int  # of them, those that differ from their control


def outcome(
    patched: bool, model: Path, prompts: Sequence[Sequence[int]], tick: Callable[[], None]
) -> Outcome:
    """Ask an engine everything; its trace lasts only for the two passes, not for the controls."""
    with tempfile.TemporaryDirectory() as folder:
        probe.start(folder, collector=False)
        try:
            engine = _engine(patched, model)
            pairs = [_ask(engine, prompt, tick) for prompt in prompts for _ in range(2)]
        finally:
            probe.stop()
        controls = []
        for prompt in prompts:
            engine.flush_cache()
            controls.append(_ask(engine, prompt, tick))
        repeats = list(zip(pairs[1::2], controls, strict=True))
        with slotscope.open(folder, time_limit_s=0) as trace:
            return _told(trace, pairs, repeats)


def _engine(patched: bool, model: Path) -> Engine:
    """In float64 no near tie can excuse a different answer."""
    return Engine(
        EngineConfig(
            model_path=model,
            dtype="float64",
            context_length=512,
            max_running_requests=1,
            max_total_tokens=16384,
            max_mamba_cache_size=POOL,
            mamba_track_interval=INTERVAL,
            mamba_radix_cache_strategy="extra_buffer_lazy",
            speculative_algorithm="NEXTN",
            without_patch=() if patched else (PATCH,),
        )
    )


def _ask(engine: Engine, prompt: Sequence[int], tick: Callable[[], None]) -> Request:
    sampling = SamplingParams(max_new_tokens=ANSWER, temperature=0, ignore_eos=True)
    [request] = engine.generate([prompt], sampling)
    tick()
    return request


def _told(
    trace: slotscope.Trace,
    asked: Sequence[Request],
    repeats: Sequence[tuple[Request, Request]],
) -> Outcome:
    con = trace.connection
    failed = [number for (number,) in con.execute(FAILED).fetchall()]
    [(suppressed,)] = con.execute(SUPPRESSED).fetchall()
    [(republished,)] = con.execute(REPUBLISHED, [INTERVAL]).fetchall()
    aliased = frozenset(con.execute(ALIASED).fetchall())
    report = check.run(trace)
    causes = [finding for finding in report.findings if finding.detector == "D1"]
    blind = sum(verdict.verdict == "blind" for verdict in report.verdicts)
    return Outcome(
        len(failed),
        len({request.prompt for request in asked if request.number in failed}),
        suppressed,
        aliased,
        frozenset(_lease(finding) for finding in causes),
        len(report.findings) - len(causes) + blind,
        republished,
        sum(again.usage.cached_tokens > 0 for again, _ in repeats),
        sum(again.output != control.output for again, control in repeats),
    )


def _lease(finding: Finding) -> Lease:
    found = (finding.request, finding.slot, finding.generation)
    assert None not in found, f"{finding.title} names no lease of a request"
    return found  # type: ignore[return-value]


def run() -> Table:
    """Without the patch and with it."""
    torch.set_num_threads(1)
    table = Table(
        "donation",
        f"{PROMPTS} prompts of {PROMPT_TOKENS} tokens asked twice of {POOL} slots, "
        f"interval {INTERVAL}",
        notes=[
            "Lazy, NEXTN, overlap, float64; one request at a time, and no flag makes a spare fail.",
            "Aliased: by SQL on the events. Found: by D1, as a cause. A control has a flushed "
            "cache.",
        ],
    )
    prompts = distinct(PROMPTS, PROMPT_TOKENS)
    with Progress() as progress:
        task = progress.add_task("donation", total=6 * PROMPTS)
        for patched in (False, True):
            model = model_folder(Path(BUNDLED))
            found = outcome(patched, model, prompts, lambda: progress.advance(task))
            _add(table, "patch on" if patched else "patch off", SEED[PATCH * patched], found)
    return table


def _add(table: Table, name: str, upstream: dict[str, int], found: Outcome) -> None:
    table.add(
        f"{name}: spare failures", "events", found.failures, upstream["spare failures"], "upstream"
    )
    table.add(f"{name}: prompts that met one", f"of {PROMPTS}", found.failing, 35, "upstream")
    for what, count in (
        ("suppressed donations", found.suppressed),
        ("aliased donations", len(found.aliased)),
    ):
        table.add(f"{name}: {what}", "events", count, upstream[what], "upstream")
    named = len(found.aliased & found.found)
    table.add(f"{name}: aliases found", "leases", named, len(found.aliased), "aliased")
    table.add(f"{name}: findings beside", "causes", len(found.found) - named + found.foreign)
    table.add(f"{name}: published later under {INTERVAL}", "requests", found.republished)
    table.add(f"{name}: repeats from the cache", f"of {PROMPTS}", found.reused)
    table.add(f"{name}: repeats that differ from their control", f"of {PROMPTS}", found.differing)
