"""Cell: one combination of a model, a checkpoint strategy, a drafter, and ways to run them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from slotscope.engine.config import STRATEGIES
from slotscope.engine.models.config import FULL

MODELS: dict[str, dict[str, Any]] = {
    "qwen3_next": {"family": "qwen3_next"},
    "kimi_linear": {"family": "kimi_linear"},
    "granitemoehybrid": {"family": "granitemoehybrid"},
    "control": {"family": "qwen3_next", "layer_types": [FULL] * 4},
}
"""What `make_checkpoint` is told. The control is Qwen3-Next with attention in every layer: no state
can be wrong there, so what fails on it too is not about states."""

DRAFTERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "NGRAM": {"speculative_algorithm": "NGRAM"},
    "NEXTN": {"speculative_algorithm": "NEXTN"},
    "DFLASH": {"speculative_algorithm": "DFLASH"},
    "DSPARK": {"speculative_algorithm": "DSPARK"},
    "tree": {
        "speculative_algorithm": "EAGLE",
        "speculative_eagle_topk": 2,
        "speculative_num_draft_tokens": 7,
    },
}
"""Knobs of every drafter."""

STAGES = (1, 2, 4)
PAGE_SIZES = {1: 1, 8: 16}
"""Of a KV page, by ranks of decode context. On 8 ranks the tree's page is 128 tokens, twice the
track interval, so that the track grid is not the interval."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether and how it is served is for the engine to say."""

    model: str  # of MODELS
    strategy: str
    overlap: bool
    stages: int  # of the pipeline
    ranks: int  # of decode context
    drafter: str  # of DRAFTERS

    def knobs(self) -> dict[str, Any]:
        """Fields of EngineConfig."""
        return {
            "mamba_radix_cache_strategy": self.strategy,
            "disable_overlap_schedule": not self.overlap,
            "pp_size": self.stages,
            "dcp_size": self.ranks,
            "page_size": PAGE_SIZES[self.ranks],
            **DRAFTERS[self.drafter],
        }


CELLS = tuple(
    Cell(*axes) for axes in product(MODELS, STRATEGIES, (False, True), STAGES, PAGE_SIZES, DRAFTERS)
)
"""All there are."""
