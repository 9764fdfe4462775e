"""Which drafter a configuration asks for."""

from __future__ import annotations

from pathlib import Path

import torch

from slotscope.engine.config import TREES, ConfigError, EngineConfig
from slotscope.engine.folder import model_folder
from slotscope.engine.memory import Memory
from slotscope.engine.models.base import Model
from slotscope.engine.models.block_draft_load import load_block_draft
from slotscope.engine.patches import Patches
from slotscope.engine.rows import Rows

from .block import BlockDrafter, DflashDrafter, DsparkDrafter
from .drafter import Drafter, Omission
from .nextn import NextnDrafter
from .ngram import NgramDrafter
from .tree import TreeDrafter

BLOCKS: dict[str, type[BlockDrafter]] = {"DFLASH": DflashDrafter, "DSPARK": DsparkDrafter}


def make_drafter(
    config: EngineConfig, model: Model, memory: Memory, rows: Rows, dtype: torch.dtype
) -> Drafter | None:
    """None without speculation.

    Args:
        model: the part of the target that yields the last hidden state.
        memory: its own.
    """
    steps, algorithm = config.speculative_num_steps, config.speculative_algorithm
    if not algorithm:
        return None
    if algorithm == "NGRAM":
        return NgramDrafter(rows, steps)
    if algorithm in BLOCKS:
        return _block_drafter(config, model, memory, rows, dtype)
    assert algorithm in TREES, algorithm
    if not model.has_draft:
        raise ConfigError(
            f"{config.model_path} has no multi-token prediction head (no `mtp.*` weights), so "
            f"{algorithm} has nothing to draft with. Choose --speculative-algorithm NGRAM."
        )
    if (topk := config.speculative_eagle_topk) > 1:
        nodes = config.draft_tokens
        return TreeDrafter(rows, steps, model, memory, dtype, topk=topk, nodes=nodes)
    return NextnDrafter(rows, steps, model, memory, dtype)


def omission(drafter: Drafter | None, config: EngineConfig, patches: Patches) -> Omission | None:
    """What the commit of this drafter leaves out, with these patches; None: nothing.

    Raises ConfigError where the strategy can't do without it.
    """
    if drafter is None or patches.on("shared-commit"):
        return None
    lazy = config.mamba_radix_cache_strategy == "extra_buffer_lazy"
    if lazy and drafter.omits is Omission.NO_CHECKPOINT:
        raise ConfigError(
            f"without shared-commit the verify of {config.speculative_algorithm} bypasses the "
            "shared prepare and commit, so no spare is written where it crosses a track depth, "
            "and extra_buffer_lazy would promote a spare that holds nothing. Leave shared-commit "
            "on, or choose --mamba-radix-cache-strategy extra_buffer."
        )
    return drafter.omits


def _block_drafter(
    config: EngineConfig, model: Model, memory: Memory, rows: Rows, dtype: torch.dtype
) -> Drafter:
    algorithm, given = config.speculative_algorithm, config.speculative_draft_model_path
    folder = Path(given) if given else model_folder(config.model_path) / "draft"
    if not folder.is_dir():
        raise ConfigError(
            f"{algorithm} drafts with a model of its own, and {folder} is no folder. Set "
            "--speculative-draft-model-path to one with config.json and *.safetensors, or choose "
            "--speculative-algorithm NGRAM."
        )
    draft = load_block_draft(folder, model, dtype, memory.keys.device)
    if algorithm == "DSPARK" and draft.markov is None:
        raise ConfigError(
            f"{folder} has no Markov head (`markov_rank` is 0), which is what DSPARK adds to "
            "DFLASH. Choose --speculative-algorithm DFLASH, or give DSPARK's draft."
        )
    if config.draft_tokens > draft.block_size:
        raise ConfigError(
            f"a block of {config.draft_tokens} tokens is longer than the {draft.block_size} that "
            f"{folder} was made for. Set --speculative-num-steps to at most "
            f"{draft.block_size - 1}."
        )
    own = Memory.allocate(
        draft.shape,
        tokens=memory.keys.shape[2],
        ranks=memory.ranks,
        slots=0,
        rows=0,
        draft_tokens=0,
        dtype=dtype,
        device=memory.keys.device,
    )
    return BLOCKS[algorithm](rows, config.speculative_num_steps, model, draft, own)
