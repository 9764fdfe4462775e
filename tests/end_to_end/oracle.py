"""Which checkpoints are wrong in truth: each one's bytes against a cold recompute of its prefix.

It looks at the engine's memory and knows nothing of events, so it can judge the detectors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from slotscope.engine.engine import Engine
from slotscope.engine.request import SamplingParams
from slotscope.engine.tree import Node

TOLERANCE = 1e-9
"""In float64 a right state, however its tokens were fed, is as near as this; a wrong one is not."""


def checkpoints(engine: Engine, plain: Engine) -> dict[tuple[int, int], bool]:
    """(slot, generation) of each checkpoint in the tree -> is it wrong?

    Args:
        plain: an idle `no_buffer` engine on the same model, whose cache is emptied.
    """
    return {
        (lease.slot, lease.generation): not _equal(
            _state(engine, lease.slot), _recomputed(plain, _prefix(node))
        )
        for node in list(engine.scheduler.cache.tree.checkpoints())
        if (lease := node.checkpoint)
    }


def _recomputed(plain: Engine, prefix: list[int]) -> tuple[Tensor, Tensor]:
    """no_buffer files the state at the prompt's very end."""
    plain.flush_cache()
    plain.generate([prefix], SamplingParams(max_new_tokens=1, temperature=0, ignore_eos=True))
    (node,) = (n for n in plain.scheduler.cache.tree.checkpoints() if n.depth == len(prefix))
    assert node.checkpoint is not None
    return _state(plain, node.checkpoint.slot)


def _prefix(node: Node) -> list[int]:
    return [token for each in reversed(list(node.path)) for token in each.key]


def _state(engine: Engine, slot: int) -> tuple[Tensor, Tensor]:
    """Conv windows and SSM states of all layers. The loop keeps its memory to itself."""
    memories = [stage.memory for stage in engine.scheduler._runner.stages]
    windows, states = ([getattr(m, part)[:, slot] for m in memories] for part in ("conv", "ssm"))
    return torch.cat(windows), torch.cat(states)


def _equal(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE) for a, b in pairs)
