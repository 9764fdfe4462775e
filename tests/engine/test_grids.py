"""Grids: a checkpoint's depth can be named, and the step that leaves it is a flush step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotscope.engine.grids import Grids
from slotscope.engine.patches import Patches

ON = Patches()
SIZES = st.sampled_from([1, 2, 3, 16, 48, 64, 128, 192, 256])
RANKS = st.sampled_from([1, 2, 4, 8])
LENGTHS = st.integers(0, 20_000)


@pytest.mark.parametrize(
    ("page", "ranks", "interval", "checkpoint", "track"),
    [
        (64, 1, 256, 64, 256),  # all fit: the grids are what they were
        (64, 4, 256, 256, 256),
        (64, 8, 256, 512, 512),  # the page is wider than the interval
        (1, 1, 96, 64, 192),  # the state chunk is what does not fit
        (48, 1, 64, 192, 192),
    ],
)
def test_grids_fit_chunk_page_and_interval(
    page: int, ranks: int, interval: int, checkpoint: int, track: int
) -> None:
    grids = Grids.derive(64, page * ranks, interval, ON)
    assert (grids.checkpoint, grids.track) == (checkpoint, track)


@pytest.mark.parametrize(
    ("off", "checkpoint", "track"),
    [((), 512, 512), (("track-grid",), 512, 256), (("checkpoint-grid",), 64, 512)],
)
def test_each_patch_has_a_grid_of_its_own(
    off: tuple[str, ...], checkpoint: int, track: int
) -> None:
    grids = Grids.derive(64, 64 * 8, 256, Patches.without(off))
    assert (grids.checkpoint, grids.track) == (checkpoint, track)


@given(chunk=SIZES, page=SIZES, ranks=RANKS, interval=SIZES, before=LENGTHS, step=st.integers(1, 9))
def test_a_step_that_leaves_a_checkpoint_leaves_it_where_it_can_be_named_and_flushes(
    chunk: int, page: int, ranks: int, interval: int, before: int, step: int
) -> None:
    grids = Grids.derive(chunk, page * ranks, interval, ON)
    if (depth := grids.crossed(before, before + step)) is not None:
        assert grids.flushes(before, before + step)
        assert [depth % size for size in (chunk, page * ranks, interval)] == [0, 0, 0]


@given(page=SIZES, ranks=RANKS, interval=SIZES, before=LENGTHS)
def test_the_flush_cadence_is_the_raw_interval_whatever_the_page_is(
    page: int, ranks: int, interval: int, before: int
) -> None:
    """Between two flushes there are never more tokens than the interval."""
    for off in ((), ("track-grid",), ("checkpoint-grid",)):
        grids = Grids.derive(64, page * ranks, interval, Patches.without(off))
        assert grids.flushes(before, before + interval)
        assert grids.flushes(before, before + 1) == ((before + 1) % interval == 0)
