"""Upstream's reuse table: what share of later turns checkpoints serve, by pool and strategy.

Slots that running requests don't pin hold checkpoints, so a strategy that pins fewer reuses more.
Beside each figure stands that of an independent LRU model (`support/lru.py`) of the same workload.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from support.lru import Asked, LruModel, Rules
from support.texts import distinct
from table import Table

import slotscope
from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder
from slotscope.engine.request import Request, SamplingParams
from slotscope.instrument import probe

QUESTION = b"\n> Go on.\n"


@dataclass(frozen=True, slots=True)
class Workload:
    """Conversations that each ask `turns` times, `seats` of them together as one batch."""

    conversations: int
    turns: int
    seats: int  # requests that run together
    prompt: int  # tokens, of the first turn
    answer: int
    interval: int
    model: Path

    def batches(self) -> list[range]:
        """Numbers of the conversations that are asked together."""
        return [
            range(first, min(first + self.seats, self.conversations))
            for first in range(0, self.conversations, self.seats)
        ]

    def prompt_of(self, turn: int) -> int:
        """Tokens of a turn's prompt, all before it included."""
        return self.prompt + turn * (self.answer + len(QUESTION))


# The workload is fixed. Conversations, turns, seats and pools are upstream's. A client asks for
# `seats` conversations as one batch, and for the next batch when it has all answers. Each prompt
# ends 8 tokens before a track depth, so all of a batch need their spares in their first verify:
# 16 spares at once is what lazy frees, and what an eviction for each would take again. A turn adds
# 54 + 10 tokens, one track interval, so an answer ends where its checkpoint is settled whatever the
# accept lengths are, 56 tokens before the next prompt's end: of prompts this long, 0.965 can be
# cached. The interval is the least that the checkpoint grid allows, since a CPU can't serve prompts
# of many thousand tokens.
INTERVAL = 64
WORKLOAD = Workload(
    conversations=48,
    turns=3,
    seats=16,
    prompt=1528,
    answer=54,
    interval=INTERVAL,
    model=model_folder(Path(BUNDLED)),
)
DRAFTED = 8
"""Tokens of two verifies: so near to a track depth, a spare is prepared."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row: how the engine is started, how the model sees it, what upstream saw."""

    name: str
    pool: int
    knobs: dict[str, Any]
    rules: Rules
    upstream_reuse: float | None
    upstream_pinned: int | None


LAZY: dict[str, Any] = {
    "mamba_radix_cache_strategy": "extra_buffer_lazy",
    "speculative_algorithm": "NEXTN",
}
EVICTING = LAZY | {"without_patch": ("no-evict-for-spare",)}
EXTRA = LAZY | {"mamba_radix_cache_strategy": "extra_buffer"}
# Speculation may take the live state past the answer, and then no_buffer has nothing to donate.
NO_BUFFER: dict[str, Any] = {
    "mamba_radix_cache_strategy": "no_buffer",
    "disable_overlap_schedule": True,
}
LAZY_RULES = Rules(2, INTERVAL, spare="free", ahead=DRAFTED)
EVICTING_RULES = Rules(2, INTERVAL, spare="evict", ahead=DRAFTED)
EXTRA_RULES, NO_BUFFER_RULES = Rules(3, INTERVAL), Rules(1, 1, lag=0)

CASES = (
    Case("extra_buffer_lazy", 1024, LAZY, LAZY_RULES, 0.9677, 32),
    Case("extra_buffer", 1024, EXTRA, EXTRA_RULES, 0.9677, 48),
    Case("no_buffer", 1024, NO_BUFFER, NO_BUFFER_RULES, None, None),
    Case("extra_buffer_lazy", 96, LAZY, LAZY_RULES, 0.1265, 32),  # of 0.106 to 0.147
    Case("lazy, a spare evicts", 96, EVICTING, EVICTING_RULES, 0.0161, None),
    Case("extra_buffer", 96, EXTRA, EXTRA_RULES, 0.0161, 48),
    Case("no_buffer", 96, NO_BUFFER, NO_BUFFER_RULES, None, None),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case gave."""

    reuse: float  # cached over prompt tokens, turns after the first
    model: float  # the same of the LRU model
    pinned: int  # slots of 16 running requests, most of the time
    pinned_max: int
    accept_length: float | None


def outcome(case: Case, load: Workload = WORKLOAD) -> Outcome:
    """Serve the workload, traced, and let the model serve it too."""
    with tempfile.TemporaryDirectory() as folder:
        probe.start(folder, collector=False)
        try:
            engine = _engine(case, load)
            conversations = _served(engine, load)
        finally:
            probe.stop()
        with slotscope.open(folder, time_limit_s=0) as trace:
            accepted = _accepted(trace)
            pinned, pinned_max = _pinned(trace, load.seats)
    later = [request for turns in conversations for request in turns[1:]]
    cached = sum(request.usage.cached_tokens for request in later)
    return Outcome(
        cached / sum(len(request.prompt) for request in later),
        modelled(
            case, load, [[accepted.get(r.number, []) for r in turns] for turns in conversations]
        ),
        pinned,
        pinned_max,
        engine.stats().accept_length,
    )


def modelled(case: Case, load: Workload, accepted: list[list[list[int]]]) -> float:
    """Reuse that an LRU cache would give.

    Args:
        accepted: of each turn of each conversation, the tokens that each of its verifies accepted.
            Sampling decides them, not the cache: they belong to the workload.
    """
    model = LruModel(case.pool, load.seats, case.rules)
    conversations = [
        [
            Asked(number, load.prompt_of(turn), load.answer, steps)
            for turn, steps in enumerate(turns)
        ]
        for number, turns in enumerate(accepted)
    ]
    for turn in range(load.turns):
        for batch in load.batches():
            model.serve([conversations[number][turn] for number in batch])
    later = [request for turns in conversations for request in turns[1:]]
    return sum(request.cached for request in later) / sum(request.prompt for request in later)


def _engine(case: Case, load: Workload) -> Engine:
    return Engine(
        EngineConfig(
            model_path=load.model,
            context_length=2048,
            max_running_requests=load.seats,
            max_total_tokens=131072,
            # No prompt is cut into chunks, so each leaves one checkpoint, whatever runs beside it.
            chunked_prefill_size=load.seats * 2048,
            max_mamba_cache_size=case.pool,
            mamba_track_interval=load.interval,
            **case.knobs,
        )
    )


def _served(engine: Engine, load: Workload) -> list[list[Request]]:
    """The turns of each conversation. The engine is turned until a batch has ended."""
    sampling = SamplingParams(max_new_tokens=load.answer, temperature=0, ignore_eos=True)
    prompts = distinct(load.conversations, load.prompt)
    conversations: list[list[Request]] = [[] for _ in prompts]
    for turn in range(load.turns):
        for batch in load.batches():
            for number in batch:
                turns = conversations[number]
                prompt = (*turns[-1].tokens, *QUESTION) if turns else prompts[number]
                turns.append(Request(f"c{number}.{turn}", prompt, sampling, lambda _: None))
                engine.submit(turns[-1])
            engine.turn()
            while not engine.scheduler.idle:
                engine.turn()
    return conversations


def _accepted(trace: slotscope.Trace) -> dict[int, list[int]]:
    rows = trace.connection.execute(
        """
        SELECT request, list(accept_len ORDER BY position, seq)
        FROM events
        WHERE op = 'scatter' AND role = 'live'
        GROUP BY request
        """
    ).fetchall()
    return dict(rows)


def _pinned(trace: slotscope.Trace, seats: int) -> tuple[int, int]:
    """Slots that running requests hold while all seats are taken: most of the time, and at most."""
    [(mostly, most)] = trace.connection.execute(
        """
        WITH acts AS (
            SELECT "order", seq, op,
                   CASE op WHEN 'request.begin' THEN 1 WHEN 'request.end' THEN -1 ELSE 0 END
                       AS seats,
                   CASE WHEN op = 'allocate' AND slot IS NOT NULL THEN 1
                        WHEN op = 'free' AND request IS NOT NULL THEN -1
                        WHEN op = 'insert' AND outcome IS NULL THEN -1
                        ELSE 0 END AS slots
            FROM events
        ),
        sums AS (
            SELECT op, sum(seats) OVER before AS seats, sum(slots) OVER before AS slots
            FROM acts
            WINDOW before AS (ORDER BY "order", seq ROWS UNBOUNDED PRECEDING)
        )
        SELECT mode(slots), max(slots)
        FROM sums
        WHERE op = 'forward.launch' AND seats = ?
        """,
        [seats],
    ).fetchall()
    return int(mostly), int(most)


def run() -> Table:
    """Every case."""
    torch.set_num_threads(1)
    load = WORKLOAD
    table = Table(
        "reuse",
        f"Reuse of {load.conversations} conversations x {load.turns} turns, {load.seats} running",
        notes=[
            f"prompts of {load.prompt} tokens, answers of {load.answer}, questions of "
            f"{len(QUESTION)}, interval {load.interval};",
            f"a client asks {load.seats} conversations at once, and goes on when all are answered.",
            "no_buffer: serial, without speculation; it has no grid, so it caches more of each.",
        ],
    )
    for case in track(CASES, "reuse"):
        found = outcome(case)
        name = f"{case.pool} slots, {case.name}"
        table.add(f"{name}: reuse", "share", found.reuse, case.upstream_reuse, "upstream")
        table.add(f"{name}: reuse", "share", found.reuse, found.model, "LRU model")
        table.add(
            f"{name}: pinned, mostly", "slots", found.pinned, case.upstream_pinned, "upstream"
        )
        table.add(f"{name}: pinned, at most", "slots", found.pinned_max)
        if found.accept_length is not None:
            table.add(f"{name}: accept length", "tokens", found.accept_length)
    return table
