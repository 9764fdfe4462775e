"""Is a generation from the cache the generation without one? KL of the two, and accept length.

The kit is upstream's: log-probabilities of the chosen tokens, as a cache-hit generation gave them,
against those of one plain prefill over the whole text that never saw a cache. Of each position with
log ratio r = log p_recomputed - log p_generated the estimate is exp(r) - 1 - r (never negative; its
mean over tokens drawn from p_generated is the KL divergence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from support.texts import distinct
from table import Table

from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.load import load
from slotscope.engine.request import Request, SamplingParams

REQUESTS, SEATS, INTERVAL = 32, 16, 64
PROMPT, ANSWER, CONTINUED = 200, 70, 32
"""A prompt leaves a checkpoint at 192 (prefill), its answer one at 256 (decode)."""
QUESTION = b"\nGo on: "


@dataclass(frozen=True, slots=True)
class Case:
    """One row of upstream's table."""

    name: str
    pool: int
    knobs: dict[str, Any]
    upstream_decode: float | str = "n/a"
    upstream_prefill: float | str = "n/a"
    upstream_accept: float | str = "n/a"
    prompt: int = PROMPT
    dtypes: tuple[str, ...] = ("float32", "float64")


CASES = (
    Case("lazy", 256, {}, 0.000214, 0.000334, 2.400),
    Case(
        "extra_buffer",
        256,
        {"mamba_radix_cache_strategy": "extra_buffer"},
        0.000229,
        0.000334,
        2.356,
    ),
    Case("lazy, 68 slots", 68, {}, upstream_accept=2.426),
    Case("lazy, no spare ever", 256, {"fail_spare_slots": True}, upstream_accept=2.426),
    # What the kit says where checkpoints are wrong: every prefill donates under a verify.
    Case(
        "wrong on purpose",
        256,
        {"fail_spare_slots": True, "without_patch": ("prefill-donation-guard",)},
        prompt=255,
        dtypes=("float32",),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case in one precision."""

    decode_kl: float | None  # None: no hit
    decode_hits: int
    prefill_kl: float | None
    prefill_hits: int
    accept_length: float


def outcome(case: Case, dtype: str, prompts: Sequence[tuple[int, ...]], model: Path) -> Outcome:
    """Ask, ask on behind the answers, ask the first prompts again; recompute what came of hits."""
    engine = Engine(
        EngineConfig(
            model_path=model,
            dtype=dtype,
            context_length=1024,
            max_running_requests=SEATS,
            max_total_tokens=32768,
            max_mamba_cache_size=case.pool,
            mamba_track_interval=INTERVAL,
            speculative_algorithm="NEXTN",
            **case.knobs,
        )
    )
    first = engine.generate(prompts, _greedy(ANSWER))
    on = engine.generate([(*each.tokens, *QUESTION) for each in first], _greedy(CONTINUED))
    again = engine.generate(prompts, _greedy(CONTINUED))
    # From a checkpoint that decode left, which lies behind the prompt; and from one of prefill.
    decode = [request for request in on if request.usage.cached_tokens > case.prompt]
    prefill = [request for request in again if request.usage.cached_tokens]
    plain = Plain(model, getattr(torch, dtype))
    accept = engine.stats().accept_length
    assert accept is not None, "NEXTN has verified something"
    return Outcome(_kl(plain, decode), len(decode), _kl(plain, prefill), len(prefill), accept)


class Plain:
    """The model alone: no cache, no scheduler, one prefill of a whole text."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self._model, self._dtype = load(folder, dtype, torch.device("cpu")), dtype

    @torch.inference_mode()
    def logprobs(self, request: Request) -> torch.Tensor:
        """[output] float64, of the request's output."""
        driver = Driver(self._model, self._dtype, tokens=1024, slots=2)
        driver.begin(1)
        hidden = driver.prefill({1: request.tokens})
        logits = self._model.logits(hidden[len(request.prompt) - 1 : -1])
        chosen = torch.tensor(request.output)[:, None]
        return logits.log_softmax(-1).gather(-1, chosen)[:, 0].double()


def _kl(plain: Plain, requests: Sequence[Request]) -> float | None:
    """Mean estimate over all positions of the requests' outputs; None without requests."""
    if not requests:
        return None
    generated = torch.tensor([each.logprobs for each in requests], dtype=torch.float64)
    ratio = torch.stack([plain.logprobs(each) for each in requests]) - generated
    return float((ratio.expm1() - ratio).mean())


def run() -> Table:
    """Every case in both precisions."""
    torch.set_num_threads(1)
    table = Table(
        "cache_hit_kl",
        "KL between generation from the cache and recomputation without one",
        notes=[
            f"{REQUESTS} requests, {SEATS} running; NEXTN, 3 steps. Upstream: bfloat16 on GPUs.",
            "Wrong on purpose: prefill-donation-guard off, no spare ever. The kit must show it.",
        ],
    )
    model = model_folder(Path(BUNDLED))
    rounds = [(each, dtype) for each in CASES for dtype in each.dtypes]
    for case, dtype in track(rounds, "cache_hit_kl"):
        found = outcome(case, dtype, distinct(REQUESTS, case.prompt), model)
        for what, kl, hits, reported in (
            ("decode", found.decode_kl, found.decode_hits, case.upstream_decode),
            ("prefill", found.prefill_kl, found.prefill_hits, case.upstream_prefill),
        ):
            name = f"{case.name}, {dtype}: {what}-cache"
            table.add(f"{name} KL", "nat", "no hit" if kl is None else kl, reported, "upstream")
            table.add(f"{name} hits", f"of {REQUESTS}", hits)
        name = f"{case.name}, {dtype}: accept length"
        table.add(name, "tokens", found.accept_length, case.upstream_accept, "upstream")
    return table


def _greedy(tokens: int) -> SamplingParams:
    return SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)
