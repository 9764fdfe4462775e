"""The engine serves the folder: transformers' text, in few verifies."""

from __future__ import annotations

from pathlib import Path

from asking import greedy
from torch import Tensor

from slotscope.engine.config import EngineConfig
from slotscope.engine.engine import Engine
from slotscope.engine.folder import BUNDLED, model_folder

from .conftest import PROMPT, WRITTEN


def test_drafted_text_equals_transformers_and_needs_half_the_forwards(texts: Tensor) -> None:
    engine = Engine(
        EngineConfig(
            model_path=model_folder(Path(BUNDLED)),
            speculative_algorithm="NEXTN",
            context_length=512,
            max_total_tokens=4096,
        )
    )
    prompts = [tuple(row[:PROMPT]) for row in texts.tolist()]
    answers = engine.generate(prompts, greedy(WRITTEN))
    assert [answer.output for answer in answers] == texts[:, PROMPT:].tolist()
    accepted = sum(answer.usage.accept_count for answer in answers)
    verifies = sum(answer.usage.verify_count for answer in answers)
    assert accepted / verifies >= 2.0
