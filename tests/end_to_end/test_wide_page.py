"""The page of the tree that ranks of decode context make, and a grid that forgot of it.

The figures are upstream's: pages of 64 on 8 ranks make pages of 512, and decode tracks every 256.
Before the fixes no guard stood at the tree either: it is a patch of its own, off here with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from asking import Build, greedy, random_prompt

from slotscope.engine.request import Request
from tests.end_to_end.traced import Judged, judged, tracing

WIDE: dict[str, Any] = {
    "page_size": 64,
    "dcp_size": 8,
    "mamba_track_interval": 256,
    "chunked_prefill_size": 1024,
}


@dataclass(frozen=True)
class Told:
    """What a donor's trace says before anybody has reused anything, and the answers after that."""

    before: Judged
    warm: Request
    cold: Request


def donate_and_continue(
    build: Build, directory: Path, off: tuple[str, ...], prompt: int, answer: int
) -> Told:
    """A donor, the verdicts on it, and then what continues its first 540 tokens: warm, and cold.

    The small model's state fades: more of the donor's tokens would hide what was wrong before them.
    """
    with tracing(directory):
        engine = build(**WIDE, without_patch=off)
        [donor] = engine.generate([random_prompt(prompt, seed=prompt)], greedy(answer))
    told = judged(directory)
    [warm] = engine.generate([donor.tokens[:540]], greedy(12))
    assert engine.flush_cache()
    [cold] = engine.generate([donor.tokens[:540]], greedy(12))
    assert (warm.usage.cached_tokens, cold.usage.cached_tokens) in ((512, 0), (0, 0))
    return Told(told, warm, cold)


TWINS = [
    # Decode passes 512 and then 768, the first odd multiple of 256 behind a page.
    ("track-grid", 511, 260, 768),
    # Prefill has a state every 64 tokens, the last one at 576.
    ("checkpoint-grid", 600, 4, 576),
]


@pytest.mark.parametrize(("patch", "prompt", "answer", "depth"), TWINS)
def test_the_donate_is_found_before_a_wrong_answer_is_served(
    build: Build, tmp_path: Path, patch: str, prompt: int, answer: int, depth: int
) -> None:
    told = donate_and_continue(build, tmp_path / "trace", (patch,), prompt, answer)
    (finding,) = told.before.report.findings
    assert (finding.detector, told.before.ops["donate"]) == ("D1", 1)
    assert f"at {depth} tokens" in finding.because
    assert "as a state of 512 tokens" in finding.because
    assert told.warm.usage.cached_tokens == 512
    assert told.warm.output != told.cold.output


@pytest.mark.parametrize(("patch", "prompt", "answer", "depth"), TWINS)
def test_with_the_grid_the_donate_is_right(
    build: Build, tmp_path: Path, patch: str, prompt: int, answer: int, depth: int
) -> None:
    """No guard is needed for that."""
    off = ("insert-depth-guard",)
    told = donate_and_continue(build, tmp_path / "trace", off, prompt, answer)
    assert set(told.before.verdicts.values()) == {"clean"}
    assert told.warm.usage.cached_tokens == 512
    assert told.warm.output == told.cold.output
