"""Trial: a cell's engine serves a load, and its tokens are those of the plain engine, or not."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from slotscope.engine.config import ConfigError, EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.models.driver import Driver
from slotscope.engine.models.load import load
from slotscope.engine.models.testing import make_checkpoint
from slotscope.engine.request import Request, SamplingParams

from .cell import MODELS, Cell

INTERVAL = 64
LENGTHS = (5, 50, 115)
"""Of the prompts. The answers to the last two pass a depth that decode tracks: 64 where a page of
the tree is one token, 128 with every page."""
ANSWER, CONTINUATION, BEGINNING = 20, 8, 4
"""Tokens asked for: first, behind each answer, and of the first prompts once more."""
PLAIN: dict[str, Any] = {"disable_overlap_schedule": True, "disable_radix_cache": True}
"""Serial, one stage, one rank, nothing drafted, nothing reused."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a cell. By default it was served, and all tokens were the plain engine's."""

    refusal: str = ""  # in the engine's words
    margins: tuple[float, ...] = ()  # of each answer that differs, where it does
    idle: bool = False  # decode left nothing that was resumed, or no draft was accepted


@dataclass(frozen=True, slots=True)
class Round:
    """Prompts that are served together, and what the plain engine answers."""

    prompts: tuple[tuple[int, ...], ...]
    given: tuple[int, ...]  # leading tokens of each that no engine has put out
    answers: tuple[list[int], ...]

    def served(self, engine: Engine) -> list[Request]:
        """By that engine, greedily."""
        return _serve(engine, self.prompts, len(self.answers[0]))


@dataclass(frozen=True, slots=True)
class Expected:
    """A model, and what the plain engine answers on it."""

    folder: Path
    rounds: tuple[Round, ...]


@dataclass(slots=True)
class Trial:
    """Random models in a folder, and what the plain engine answers on each.

    A round of prompts is followed by one that continues its answers, so that checkpoints which
    decode steps and verifies left are resumed, and by the first prompts once more: had the
    continuations spoilt a checkpoint, it would show.
    """

    folder: Path
    _expected: dict[str, Expected] = field(default_factory=dict)

    def refusal(self, cell: Cell) -> str:
        """The engine's words, the model's folder by its name alone; "" where it is served."""
        try:
            self._engine(cell)
        except ConfigError as error:
            return self._words(error)
        return ""

    def run(self, cell: Cell, **knobs: Any) -> Outcome:
        """Try the cell; `knobs` are further fields of EngineConfig."""
        expected = self.expected(cell.model)
        try:
            engine = self._engine(cell, **knobs)
        except ConfigError as error:
            return Outcome(self._words(error))
        margins, resumed = [], False
        for round_ in expected.rounds:
            asked = zip(round_.served(engine), round_.given, round_.answers, strict=True)
            for request, given, right in asked:
                resumed |= request.usage.cached_tokens > given
                if request.output != right:
                    shared = _shared(right, request.output)
                    margins.append(_margin(expected.folder, (*request.prompt, *shared)))
        stats = engine.stats()
        drafted = stats.accepted > stats.verifies or not engine.config.speculative_algorithm
        return Outcome("", tuple(margins), idle=not (resumed and drafted))

    def expected(self, model: str) -> Expected:
        """Made once for each model, with its folder."""
        if model not in self._expected:
            folder = make_checkpoint(self.folder / model, draft=True, **MODELS[model])
            self._expected[model] = Expected(folder, _rounds(_engine(folder, **PLAIN)))
        return self._expected[model]

    def _engine(self, cell: Cell, **knobs: Any) -> Engine:
        return _engine(self.expected(cell.model).folder, **cell.knobs() | knobs)

    def _words(self, error: ConfigError) -> str:
        return str(error).replace(f"{self.folder}/", "")


def _engine(folder: Path, **knobs: Any) -> Engine:
    """Small, and in float64, so that no near tie excuses a difference."""
    config = EngineConfig(
        model_path=folder,
        dtype="float64",
        context_length=256,
        max_running_requests=4,
        max_total_tokens=1024,
        max_mamba_cache_size=24,
        mamba_track_interval=INTERVAL,
        chunked_prefill_size=100,
        **knobs,
    )
    return Engine(config)


def _rounds(plain: Engine) -> tuple[Round, ...]:
    """First prompts, then their continuations, then the first ones again."""
    prompts = tuple(_prompt(length) for length in LENGTHS)
    first = _serve(plain, prompts, ANSWER)
    longer = tuple((*request.tokens, *request.prompt[:4]) for request in first)
    return tuple(
        Round(asked, LENGTHS, tuple(r.output for r in _serve(plain, asked, tokens)))
        for asked, tokens in ((prompts, ANSWER), (longer, CONTINUATION), (prompts, BEGINNING))
    )


def _serve(engine: Engine, prompts: tuple[tuple[int, ...], ...], tokens: int) -> list[Request]:
    asked = SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)
    return engine.generate(prompts, asked)


def _prompt(length: int) -> tuple[int, ...]:
    draw = random.Random(length)
    return tuple(draw.randrange(1, 100) for _ in range(length))


def _shared(right: list[int], given: list[int]) -> list[int]:
    """The tokens before the first one that differs."""
    pairs = zip(right, given, strict=True)
    return right[: next(at for at, (one, other) in enumerate(pairs) if one != other)]


@cache
def _margin(folder: Path, tokens: tuple[int, ...]) -> float:
    """How far the best logit behind these tokens is above the second, by a cold prefill."""
    model = load(folder, torch.float64, torch.device("cpu"))
    driver = Driver(model, torch.float64)
    driver.begin(1)
    best = model.logits(driver.prefill({1: tokens})[-1]).topk(2).values
    return float(best[0] - best[1])
