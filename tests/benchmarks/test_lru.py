"""The LRU model, by hand: who is evicted, and whom a running request protects."""

from __future__ import annotations

from support.lru import Asked, LruModel, Rules

RULES = Rules(pinned=2, grid=64, lag=0)


def served(model: LruModel, *conversations: int, prompt: int = 70) -> list[int]:
    """What each found, asked one after the other."""
    found = []
    for each in conversations:
        request = Asked(each, prompt, answer=4)
        model.serve([request])
        found.append(request.cached)
    return found


def test_what_is_not_pinned_holds_the_latest_checkpoints() -> None:
    model = LruModel(pool=4, seats=1, rules=RULES)
    assert served(model, 1, 2, 3) == [0, 0, 0]
    # A running request pins two slots, and takes one more where it leaves a checkpoint: room for
    # two checkpoints while one is served.
    assert served(model, 3, 2, 1) == [64, 64, 0]


def test_being_resumed_from_keeps_a_checkpoint_longer() -> None:
    model = LruModel(pool=4, seats=1, rules=RULES)
    assert served(model, 1, 2, 1, 3, 1, 2) == [0, 0, 64, 0, 64, 0]


def test_a_spare_that_evicts_costs_a_checkpoint() -> None:
    kept, evicted = (
        LruModel(pool=4, seats=1, rules=Rules(2, 64, spare=spare, ahead=8, lag=0))
        for spare in ("free", "evict")
    )
    for model in (kept, evicted):
        served(model, 1, 2)
        model.serve([Asked(3, prompt=66, answer=80)])  # decodes across a depth of the grid
    assert len(kept.cached) == len(evicted.cached) + 1


def test_the_deepest_checkpoint_below_the_end_serves() -> None:
    model = LruModel(pool=9, seats=1, rules=RULES)
    assert served(model, 1, prompt=130) == [0]
    assert served(model, 1, prompt=128) == [0], "128 tokens are all there are; one must be computed"
    assert served(model, 1, prompt=129) == [128]
