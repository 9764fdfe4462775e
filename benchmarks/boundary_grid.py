"""Upstream's grid: requests that end around a checkpoint boundary, and what reuse is worth.

A prompt of 500 tokens, a track interval of 64: checkpoints at 448, 512, ..., 832. Requests are made
to end at chosen offsets around 832; then 32 further tokens are generated from the whole text, once
from the cache and once after a flush. Overlap on, lazy, spares to be had or all failing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from table import Table

from slotscope.engine.bundled.corpus import document
from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder
from slotscope.engine.request import SamplingParams

PROMPT, INTERVAL, BOUNDARY, CONTINUED = 500, 64, 832, 32
OFFSETS = (-2, -1, 0, 1, 2, 16, 32)

SEED_DEPTHS = {
    (offset, exhausted): 832 if offset > 2 else 448 if exhausted else 768
    for offset in OFFSETS
    for exhausted in (False, True)
}
"""Depth that upstream's table names for the cells with speculation."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One request that ended at `BOUNDARY + offset`, and its continuation, warm and cold."""

    offset: int
    exhausted: bool
    drafter: str
    cached: int
    same: bool
    logprob_diff: float

    @property
    def upstream_depth(self) -> int | None:
        """What upstream's table has for it; None without speculation."""
        return SEED_DEPTHS[self.offset, self.exhausted] if self.drafter else None


def cells(drafter: str, exhausted: bool) -> list[Cell]:
    """The seven cells with this drafter, or without one, with spares to be had or not."""
    engine = _engine(drafter, exhausted)
    prompt = tuple(text_of(PROMPT))
    return [_cell(engine, prompt, offset) for offset in OFFSETS]


def text_of(tokens: int) -> bytes:
    """The first so many bytes, each a token, of texts of the model's kind."""
    text, number = b"", 9_500_000
    while len(text) < tokens:
        text += document(number).encode()
        number += 1
    return text[:tokens]


def _engine(drafter: str, exhausted: bool) -> Engine:
    return Engine(
        EngineConfig(
            model_path=model_folder(Path(BUNDLED)),
            dtype="float64",
            context_length=1024,
            max_running_requests=2,
            max_total_tokens=8192,
            max_mamba_cache_size=32,
            mamba_track_interval=INTERVAL,
            speculative_algorithm=drafter,
            fail_spare_slots=exhausted,
        )
    )


def _cell(engine: Engine, prompt: tuple[int, ...], offset: int) -> Cell:
    """A, B from what A left, and B once more of an empty cache."""
    [ended] = engine.generate([prompt], _greedy(BOUNDARY + offset - PROMPT))
    [warm] = engine.generate([ended.tokens], _greedy(CONTINUED))
    engine.flush_cache()
    [cold] = engine.generate([ended.tokens], _greedy(CONTINUED))
    engine.flush_cache()
    pairs = zip(warm.logprobs, cold.logprobs, strict=True)
    return Cell(
        offset,
        engine.config.fail_spare_slots,
        engine.config.speculative_algorithm,
        warm.usage.cached_tokens,
        warm.output == cold.output,
        max(abs(a - b) for a, b in pairs),
    )


def run() -> Table:
    """All 28 cells, with NEXTN and without speculation."""
    table = Table("boundary_grid", "Requests that end around a checkpoint boundary")
    identical = 0
    for drafter, exhausted in product(("NEXTN", ""), (False, True)):
        for cell in cells(drafter, exhausted):
            identical += cell.same
            pool = "exhausted" if cell.exhausted else "free"
            name = f"{drafter or 'no speculation'}, spares {pool}, {cell.offset:+d}"
            table.add(
                f"{name}: depth served", "tokens", cell.cached, cell.upstream_depth, "upstream"
            )
            table.add(f"{name}: max |d logprob|", "nat", cell.logprob_diff)
    table.add("cells with identical tokens", "of 28", identical, 28, "upstream")
    return table


def _greedy(tokens: int) -> SamplingParams:
    return SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)
