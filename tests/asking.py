"""What engine tests ask for: an engine, prompts without structure, so many greedy tokens."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slotscope.engine.combinations.cell import DRAFTERS as DRAFTERS
from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.request import SamplingParams

Build = Callable[..., Engine]
"""The `build` fixture: `build(**knobs)` makes an engine on the random checkpoint."""


def engine_on(checkpoint: Path, **knobs: Any) -> Engine:
    """A small engine in float64: no near tie can excuse a difference there."""
    base: dict[str, Any] = {
        "model_path": checkpoint,
        "dtype": "float64",
        "context_length": 1024,
        "max_running_requests": 4,
        "max_total_tokens": 8192,
        "max_mamba_cache_size": 40,
        "mamba_track_interval": 64,
    }
    return Engine(EngineConfig(**base | knobs))


def greedy(tokens: int) -> SamplingParams:
    """So many tokens, whatever they are."""
    return SamplingParams(max_new_tokens=tokens, temperature=0, ignore_eos=True)


def random_prompt(length: int, seed: int) -> tuple[int, ...]:
    """Token ids without structure."""
    draw = random.Random(seed)
    return tuple(draw.randrange(1, 100) for _ in range(length))
