"""Each patch switched off brings its upstream symptom back; switched on, it is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asking import greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.engine import Engine
from slotscope.engine.patches import GRIDS, PATCHES, Patches
from slotscope.engine.request import Request
from slotscope.instrument.event import Role


def test_an_unknown_patch_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no patch is called lazy-guard.*lazy-finish-guard"):
        Patches.without(["lazy-guard"])


def test_each_patch_can_be_switched_off_alone() -> None:
    for name in PATCHES.keys() - GRIDS:
        patches = Patches.without([name])
        assert [other for other in PATCHES if not patches.on(other)] == [name]


@pytest.mark.parametrize("grid", sorted(GRIDS))
def test_without_a_grid_its_guard_is_off_too(grid: str) -> None:
    patches = Patches.without([grid])
    assert {name for name in PATCHES if not patches.on(name)} == {grid, "insert-depth-guard"}


@pytest.mark.parametrize("guarded", [True, False])
def test_the_tree_takes_no_state_under_another_depth(
    build: Callable[..., Engine], guarded: bool
) -> None:
    engine = build(page_size=128, without_patch=() if guarded else ("insert-depth-guard",))
    cache = engine.scheduler.cache
    request = Request("asked", random_prompt(220, seed=7), greedy(1))
    running = cache.admit(request, slots=2, ahead=1)
    assert running is not None
    keep = cache.take_slot(running, Role.KEEP, evict=False)
    assert keep is not None
    assert cache.publish(running, keep, 192, Role.KEEP, 64) != guarded
    assert (cache.tree.match(request.tokens, "") is None) == guarded


def test_without_shared_commit_ngram_goes_wrong(build: Callable[..., Engine]) -> None:
    prompt = random_prompt(100, seed=1)
    [plain] = build().generate([prompt], greedy(30))
    outputs = [
        build(speculative_algorithm=drafter, without_patch=off).generate([prompt], greedy(30))
        for drafter, off in (
            ("NGRAM", ()),
            ("NGRAM", ("shared-commit",)),
            ("NEXTN", ("shared-commit",)),
        )
    ]
    assert [r.output == plain.output for [r] in outputs] == [True, False, True]


@pytest.mark.parametrize(
    ("off", "wrong"),
    [
        ((), False),
        (("insert-depth-guard",), False),  # nothing is off its pages
        (("checkpoint-grid",), True),
    ],
)
def test_a_prefill_state_off_the_tree_page_is_wrong(
    build: Callable[..., Engine], off: tuple[str, ...], wrong: bool
) -> None:
    """The page is 128 and states come every 64: depth 192 can't be named."""
    prompt = random_prompt(220, seed=7)
    engine = build(page_size=128, without_patch=off)
    first, second = (engine.generate([prompt], greedy(20))[0] for _ in range(2))
    assert (first.output != second.output) == wrong


@pytest.mark.parametrize(
    ("off", "wrong"),
    [
        ((), False),
        (("track-grid",), True),
    ],
)
def test_a_decode_state_off_the_tree_page_is_wrong(
    build: Callable[..., Engine], off: tuple[str, ...], wrong: bool
) -> None:
    """The page is 128 and decode tracks every 64: the request ends with the state of 192."""
    engine = build(page_size=128, without_patch=off)
    [first] = engine.generate([random_prompt(100, seed=8)], greedy(96))
    [warm] = engine.generate([first.tokens], greedy(30))
    engine.flush_cache()
    [cold] = engine.generate([first.tokens], greedy(30))
    assert (warm.output != cold.output) == wrong


@pytest.mark.parametrize("guarded", [True, False])
def test_a_checkpoint_that_a_verify_may_write_is_kept_back_at_the_end(
    build: Callable[..., Engine], guarded: bool
) -> None:
    """No spare can be had, so the verify in flight at the end writes its crossing into the keep."""
    knobs: dict[str, Any] = {"speculative_algorithm": "NGRAM", "fail_spare_slots": True}
    off = () if guarded else ("lazy-finish-guard",)
    prompt = random_prompt(180, seed=3)
    wrong = 0
    for tokens in range(74, 79):  # ends around depth 256; the keep was written in place at 192
        engine = build(**knobs, without_patch=off)
        [first] = engine.generate([prompt], greedy(tokens))
        [warm] = engine.generate([first.tokens], greedy(12))
        engine.flush_cache()
        [cold] = engine.generate([first.tokens], greedy(12))
        wrong += warm.output != cold.output
    assert (wrong == 0) == guarded


def test_a_spare_evicts_nothing(build: Callable[..., Engine]) -> None:
    """Fill the pool with checkpoints, then let one request pass many track depths."""
    cached = []
    for off in ((), ("no-evict-for-spare",)):
        engine = build(max_mamba_cache_size=10, speculative_algorithm="NGRAM", without_patch=off)
        for seed in range(8):
            engine.generate([random_prompt(70, seed)], greedy(2))
        assert engine.stats().slots_free == 2, "just enough for one more request, without a spare"
        engine.generate([random_prompt(60, seed=99)], greedy(80))
        cached.append(engine.stats().slots_cached)
    assert cached == [9, 8]
