"""Block drafts: what they condition on, what each place guesses, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from asking import Build, engine_on, greedy, random_prompt
from torch import Tensor

from slotscope.engine.config import ConfigError
from slotscope.engine.forward import Forward
from slotscope.engine.memory import Memory
from slotscope.engine.models.block_draft_load import load_block_draft
from slotscope.engine.models.error import ModelConfigError
from slotscope.engine.models.load import load
from slotscope.instrument.event import Kind

CPU = torch.device("cpu")
BLOCK, CONTEXT = 4, 9


def forward(kind: Kind, start: int, count: int, mutual: bool = False) -> Forward:
    """Tokens start.. of one row, whose token t lies at location t + 1."""
    places = torch.arange(start, start + count)
    return Forward(
        kind=kind,
        tokens=places,
        positions=places,
        lengths=[count],
        contexts=torch.tensor([start]),
        locations=places + 1,
        table=torch.arange(1, start + count + 1)[None],
        slots=torch.tensor([0]),
        mutual=mutual,
    )


def hidden_of(checkpoint: Path, context: Tensor, embedded: Tensor) -> Tensor:
    """The draft's output [BLOCK, H] behind a context [CONTEXT, H] of the target's hidden states."""
    target = load(checkpoint, torch.float64, CPU)
    draft = load_block_draft(checkpoint / "draft", target, torch.float64, CPU)
    memory = Memory.allocate(
        draft.shape, tokens=30, slots=0, rows=0, draft_tokens=0, dtype=torch.float64, device=CPU
    )
    memory.keys.fill_(torch.nan)
    memory.values.fill_(torch.nan)
    draft.remember(forward(Kind.PREFILL, 0, CONTEXT), memory, context)
    return draft.denoise(forward(Kind.VERIFY, CONTEXT, BLOCK, mutual=True), memory, embedded)


def test_a_block_sees_the_context_and_all_of_itself(checkpoint: Path) -> None:
    """A change of any context token or of any place of the block shows in every place."""
    new = torch.Generator().manual_seed(0)
    context = torch.randn(CONTEXT, 64, generator=new, dtype=torch.float64)
    embedded = torch.randn(BLOCK, 64, generator=new, dtype=torch.float64)
    before = hidden_of(checkpoint, context, embedded)
    assert before.isfinite().all()
    for changed in (context[0], context[-1], embedded[0], embedded[-1]):
        kept = changed.clone()
        changed.neg_()
        after = hidden_of(checkpoint, context, embedded)
        assert (before != after).any(-1).all()
        changed.copy_(kept)


@pytest.mark.parametrize("algorithm", ["DFLASH", "DSPARK"])
def test_some_guesses_are_accepted(build: Build, algorithm: str) -> None:
    engine = build(speculative_algorithm=algorithm)
    engine.generate([random_prompt(60, seed=at) for at in range(3)], greedy(40))
    assert 1.02 < (engine.stats().accept_length or 0) < 2


@pytest.mark.parametrize("algorithm", ["DFLASH", "DSPARK"])
def test_lazy_refuses_a_verify_that_saves_no_checkpoint(build: Build, algorithm: str) -> None:
    off = {"speculative_algorithm": algorithm, "without_patch": ("shared-commit",)}
    with pytest.raises(ConfigError, match=f"verify of {algorithm} bypasses the shared prepare"):
        build(**off)
    build(**off, mamba_radix_cache_strategy="extra_buffer")


def test_without_shared_commit_a_block_drafter_is_right_until_its_checkpoint_is_read(
    build: Build,
) -> None:
    """The live state moves, but the state at the crossing is never saved under its label."""
    prompt = random_prompt(100, seed=1)
    knobs = {"speculative_algorithm": "DSPARK", "mamba_radix_cache_strategy": "extra_buffer"}
    for off, wrong in (((), False), (("shared-commit",), True)):
        engine = build(**knobs, without_patch=off)
        [first] = engine.generate([prompt], greedy(60))
        assert first.output == build().generate([prompt], greedy(60))[0].output
        [warm] = engine.generate([first.tokens], greedy(20))
        assert engine.flush_cache()
        [cold] = engine.generate([first.tokens], greedy(20))
        assert warm.usage.cached_tokens >= 128
        assert (warm.output != cold.output) == wrong


def test_a_draft_that_does_not_fit_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    knobs = {"speculative_algorithm": "DFLASH"}
    with pytest.raises(ConfigError, match="is no folder"):
        engine_on(checkpoint, **knobs, speculative_draft_model_path=str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="longer than the 8"):
        engine_on(checkpoint, **knobs, speculative_num_steps=8)
    folder = tmp_path / "draft"
    shutil.copytree(checkpoint / "draft", folder)
    config = json.loads((folder / "config.json").read_text())
    for changed, said in (
        ({"vocab_size": 130}, "made for another model"),
        ({"dflash_config": {"mask_token_id": 1, "target_layer_ids": [1]}}, "only the trunk's last"),
        ({"dflash_config": {}}, "mask_token_id"),
    ):
        (folder / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(ModelConfigError, match=said):
            engine_on(checkpoint, **knobs, speculative_draft_model_path=str(folder))
    (folder / "config.json").write_text(json.dumps(config | {"markov_rank": 0}))
    with pytest.raises(ConfigError, match="has no Markov head"):
        engine_on(
            checkpoint,
            speculative_algorithm="DSPARK",
            speculative_draft_model_path=str(folder),
        )
