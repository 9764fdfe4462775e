"""A tree page that doesn't divide the track interval, as context parallelism makes one.

Decode leaves a checkpoint at 192 tokens; the tree's pages are of 128, so it files the checkpoint
under 128. Releases up to 0.5.18 do that, later ones track where both grids meet:
docs/found/sglang-0.5.17-off-grid-donation.md
"""

from __future__ import annotations

from pathlib import Path

import pytest
from real_sglang import NEWEST, python
from tiny_checkpoints import qwen3_next
from traced_sglang import assert_clean, random_tokens, traced_sglang

import slotscope
from slotscope.instrument import check

pytestmark = pytest.mark.sglang

WIDE_PAGE = Path(__file__).parent / "wide_page"
OFF_GRID = "0.5.17"
PAGE, INTERVAL = 128, 192


def serve(release: str, trace: Path) -> tuple[bool, int]:
    """A prompt that decode takes past 192 tokens, then one that goes on from its first 160.

    Returns:
        Whether the second answer is Hugging Face's, and how many tokens came from the cache.
    """
    checkpoint = qwen3_next()
    prompt = random_tokens(PAGE - 8, seed=1)
    with traced_sglang(
        checkpoint,
        trace,
        release=release,
        plugins=[WIDE_PAGE],
        mamba_radix_cache_strategy="extra_buffer",
        mamba_track_interval=INTERVAL,
        page_size=PAGE,
    ) as engine:
        (first,) = engine.ask([prompt], 80)
        assert first.tokens == checkpoint.reference(prompt, 80)
        follow_up = prompt + first.tokens[:40]
        (warm,) = engine.ask([follow_up], 16)
    return warm.tokens == checkpoint.reference(follow_up, 16), warm.cached_tokens


@pytest.mark.skipif(not python(OFF_GRID).exists(), reason="SGLANG=0.5.17 make test-sglang")
def test_a_checkpoint_filed_under_another_depth_is_found(tmp_path: Path) -> None:
    right, cached = serve(OFF_GRID, tmp_path / "trace")
    assert (right, cached) == (False, PAGE)
    with slotscope.open(tmp_path / "trace") as trace:
        report = check.run(trace)
    said = {verdict.detector: verdict.verdict for verdict in report.verdicts}
    assert (said.pop("D1"), set(said.values())) == ("found", {"clean"})
    (finding,) = report.findings
    assert "must stay on a grid of 384 tokens; however, it names depth 192" in finding.because
    consequences = " ".join(each.because for each in finding.also)
    assert "filed with it as a state of 128 tokens" in consequences


@pytest.mark.skipif(not python(NEWEST).exists(), reason="make test-sglang")
def test_where_both_grids_meet_nothing_is_filed_wrongly(tmp_path: Path) -> None:
    assert serve(NEWEST, tmp_path / "trace") == (True, 0)
    with slotscope.open(tmp_path / "trace") as trace:
        assert_clean(trace)
