"""Draft trees hold the likeliest paths of the head, each as the head alone would go it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from asking import Build, engine_on, greedy, random_prompt

from slotscope.engine.config import ConfigError
from slotscope.engine.speculation.draft import Draft
from slotscope.engine.speculation.nextn import NextnDrafter
from slotscope.engine.speculation.tree import TreeDrafter

STEPS, TOPK, NODES = 3, 3, 10
KNOBS: dict[str, Any] = {
    "speculative_algorithm": "NEXTN",
    "speculative_num_steps": STEPS,
    "speculative_eagle_topk": TOPK,
    "speculative_num_draft_tokens": NODES,
}


Drafts = list[tuple[int, Draft]]
"""Tokens in the first row's state, and what was drafted behind them."""


def drafts_of(drafter: type[NextnDrafter], checkpoint: Path, **knobs: Any) -> Drafts:
    """What a drafter makes of one text."""
    drafts: Drafts = []

    class Watched(drafter):  # type: ignore[misc, valid-type]
        def draft(self, rows: torch.Tensor) -> Draft:
            drafts.append((int(self.rows.lengths[rows[0]]), super().draft(rows)))
            return drafts[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"slotscope.engine.speculation.make.{drafter.__name__}", Watched)
        engine_on(checkpoint, **knobs).generate([random_prompt(50, seed=4)], greedy(20))
    return drafts


@pytest.fixture(scope="module")
def trees(checkpoint: Path) -> Drafts:
    return drafts_of(TreeDrafter, checkpoint, **KNOBS)


def paths(draft: Draft) -> list[list[int]]:
    """The tokens from the root to each node of the first row."""
    assert draft.parents is not None
    found: list[list[int]] = [[]]
    for parent, token in zip(draft.parents[0, 1:].tolist(), draft.tokens[0].tolist(), strict=True):
        found.append([*found[parent], token])
    return found


def test_trees_are_trees(trees: Drafts) -> None:
    shapes = set()
    for _, draft in trees:
        assert draft.parents is not None
        parents = draft.parents[0].tolist()
        assert parents[0] == -1
        assert all(0 <= parent < node for node, parent in enumerate(parents) if node)
        assert draft.depths().max() <= STEPS
        assert len({tuple(path) for path in paths(draft)}) == NODES, "siblings are the same token"
        shapes.add(tuple(parents))
    assert len(shapes) > 3, "trees should follow the text"


def test_a_first_child_is_what_the_head_alone_would_draft(checkpoint: Path) -> None:
    """With all candidates kept; they stand in the order of their likelihood."""
    everything = KNOBS | {"speculative_num_draft_tokens": 1 + TOPK + (STEPS - 1) * TOPK**2}
    chains = dict(drafts_of(NextnDrafter, checkpoint, speculative_algorithm="NEXTN"))
    checked = [0] * STEPS
    for length, tree in drafts_of(TreeDrafter, checkpoint, **everything):
        if length not in chains:
            continue  # the tree had more accepted, or less
        guesses, ways = chains[length].tokens[0].tolist(), paths(tree)
        for depth in range(STEPS):
            children = [path[-1] for path in ways if path and path[:-1] == guesses[:depth]]
            assert children[:1] in ([], guesses[depth : depth + 1])
            checked[depth] += bool(children)
    assert min(checked) > 1, checked


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 2}, "NGRAM drafts none"),
        (KNOBS | {"speculative_num_draft_tokens": 30}, "2 to 22"),
        ({"speculative_algorithm": "NEXTN", "speculative_num_draft_tokens": 3}, "has 4"),
    ],
)
def test_what_no_tree_can_have_is_refused(
    build: Build, knobs: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        build(**knobs)


def test_trees_accept_more_than_chains(build: Build) -> None:
    prompts = [random_prompt(60, seed=at) for at in range(3)]
    lengths = []
    for knobs in ({"speculative_algorithm": "NEXTN"}, KNOBS):
        engine = build(**knobs)
        engine.generate(prompts, greedy(40))
        lengths.append(engine.stats().accept_length or 0)
    assert lengths[1] > lengths[0]
