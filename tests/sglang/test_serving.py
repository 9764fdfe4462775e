"""Real SGLang on this CPU: cold answers are Hugging Face's, and warm ones are the cold ones.

These prove the ground that other tests stand on, the stand-in's operators above all: a wrong
operator or a wrong commit would change tokens, since the checkpoints' states show in them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_sglang import RealSglang, stage_variables
from tiny_checkpoints import VOCABULARY, Checkpoint, qwen3_5, qwen3_next

pytestmark = pytest.mark.sglang

TOKENS = 24
GRID = 64  # page, track interval and state chunk, so that checkpoints lie at multiples of it
EXTRA: dict[str, Any] = {"mamba_track_interval": GRID, "page_size": GRID}
SERIAL: dict[str, Any] = {"disable_overlap_schedule": True}
LAZY: dict[str, Any] = {**EXTRA, "mamba_radix_cache_strategy": "extra_buffer_lazy"}  # overlaps
NGRAM = {
    "speculative_algorithm": "NGRAM",
    "speculative_num_draft_tokens": 4,
    "speculative_ngram_max_bfs_breadth": 1,
}
NEXTN = {
    "speculative_algorithm": "NEXTN",
    "speculative_num_steps": 2,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 3,
}
ENGINES: dict[str, dict[str, Any]] = {
    "no_buffer": {**SERIAL, "mamba_radix_cache_strategy": "no_buffer"},
    "extra_buffer": {**EXTRA, **SERIAL, "mamba_radix_cache_strategy": "extra_buffer"},
    "lazy": LAZY,
    "lazy-ngram": {**LAZY, **NGRAM},
    "lazy-nextn": {**LAZY, **NEXTN},
    "stages": {
        **EXTRA,
        **SERIAL,
        "mamba_radix_cache_strategy": "extra_buffer",
        "pp_size": 2,
    },
}


def prompt(length: int) -> list[int]:
    draw = random.Random(length)
    return [draw.randrange(3, VOCABULARY) for _ in range(length)]


@pytest.fixture(scope="module", params=list(ENGINES))
def served(
    request: pytest.FixtureRequest, release: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RealSglang, Checkpoint, dict[str, Any]]]:
    """An engine of this configuration, its checkpoint and its flags."""
    name: str = request.param
    checkpoint = qwen3_5() if name == "stages" else qwen3_next()
    log: Path = tmp_path_factory.mktemp(name) / "engine.log"
    with RealSglang(
        checkpoint.folder,
        release=release,
        log=log,
        variables=stage_variables(2, release) if name == "stages" else None,
        **ENGINES[name],
    ) as engine:
        yield engine, checkpoint, ENGINES[name]


def test_warm_answers_are_cold_answers_are_right(
    served: tuple[RealSglang, Checkpoint, dict[str, Any]],
) -> None:
    engine, checkpoint, flags = served
    first, short = prompt(300), prompt(100)
    right = checkpoint.reference(first, TOKENS)
    follow_up = first + right + short[:20]
    right_after = checkpoint.reference(follow_up, TOKENS)

    (cold,) = engine.ask([first], TOKENS)
    assert (cold.cached_tokens, cold.tokens) == (0, right)
    (again,) = engine.ask([first], TOKENS)
    assert again.tokens == right
    (warm,) = engine.ask([follow_up], TOKENS)
    assert warm.tokens == right_after
    engine.flush()
    (cold,) = engine.ask([follow_up], TOKENS)
    assert (cold.cached_tokens, cold.tokens) == (0, right_after)

    if "page_size" in flags:  # a checkpoint of the prefill, and one of the decode past 320
        assert again.cached_tokens == 256
        assert warm.cached_tokens == 320
    else:  # the whole first request; its last token's state is not there
        assert again.cached_tokens == 0
        assert warm.cached_tokens == len(first) + TOKENS - 1


def test_every_token_is_as_likely_as_it_should_be(
    served: tuple[RealSglang, Checkpoint, dict[str, Any]],
) -> None:
    """Logprobs show what tokens hide: half a percent too much attention changes few of them."""
    engine, checkpoint, _ = served
    engine.flush()
    said = prompt(250)
    for _ in ("cold", "warm"):
        (answer,) = engine.ask([said], TOKENS, logprobs=True)
        right = checkpoint.logprobs(said, answer.tokens)
        assert answer.logprobs == pytest.approx(right, abs=1e-4)


def test_a_batch_answers_as_its_requests_alone(
    served: tuple[RealSglang, Checkpoint, dict[str, Any]],
) -> None:
    engine, checkpoint, _ = served
    engine.flush()
    prompts = [prompt(length) for length in (100, 200, 300)]
    right = [checkpoint.reference(each, TOKENS) for each in prompts]
    assert [answer.tokens for answer in engine.ask(prompts, TOKENS)] == right
    assert [answer.tokens for answer in engine.ask(prompts, TOKENS)] == right


def test_a_repeat_is_drafted_from_what_was_said(
    served: tuple[RealSglang, Checkpoint, dict[str, Any]],
) -> None:
    engine, checkpoint, flags = served
    if "speculative_algorithm" not in flags:
        pytest.skip("This configuration doesn't speculate.")
    said = prompt(150)
    right = checkpoint.reference(said, TOKENS)
    engine.ask([said], TOKENS)
    (repeat,) = engine.ask([said], TOKENS)
    assert repeat.tokens == right
    floor = 3.0 if flags["speculative_algorithm"] == "NGRAM" else 1.0
    assert repeat.meta["spec_accept_length"] >= floor
