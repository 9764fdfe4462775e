"""A fault of real SGLang, seen from outside: 0.5.17 gives away the wrong checkpoint.

With extra_buffer_lazy and overlap, a prompt that ends one token before a track boundary is donated
after the first decode has moved the request's slot pointer. The node keyed 192 then holds the
state of 256 tokens, and a repeat of the prompt, which restores it, says something else. From
0.5.18 on it does not. This also shows that the checkpoints' states are seen in the tokens.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from real_sglang import RealSglang
from tiny_checkpoints import VOCABULARY, qwen3_next

pytestmark = pytest.mark.sglang

TOKENS = 16
BOUNDARY = 256
FAULTY = {"0.5.17"}


def test_a_prompt_that_ends_before_a_boundary(release: str, tmp_path: Path) -> None:
    checkpoint = qwen3_next()
    flags: dict[str, Any] = {
        "mamba_radix_cache_strategy": "extra_buffer_lazy",
        "mamba_track_interval": BOUNDARY,
        "page_size": 64,
    }
    differs = {}
    with RealSglang(
        checkpoint.folder, release=release, log=tmp_path / "engine.log", **flags
    ) as engine:
        for length in (BOUNDARY - 6, BOUNDARY - 1, 2 * BOUNDARY - 1):
            draw = random.Random(length)
            prompt = [draw.randrange(3, VOCABULARY) for _ in range(length)]
            (cold,) = engine.ask([prompt], TOKENS)
            (warm,) = engine.ask([prompt], TOKENS)
            assert cold.tokens == checkpoint.reference(prompt, TOKENS)
            assert warm.cached_tokens == length // 64 * 64
            differs[length] = warm.tokens != cold.tokens
    faulty = release in FAULTY
    assert differs == {BOUNDARY - 6: False, BOUNDARY - 1: faulty, 2 * BOUNDARY - 1: faulty}
